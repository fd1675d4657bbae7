import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("A file in the place of a copy") struct CopyFileTests {
  private static let most = CopyFile.mostBytes

  /// A file, and how many bytes are read of it; `nil` if there is none to be read.
  struct File: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let read: Int?
    /// Made by this, in a directory.
    let make: @Sendable (TemporaryDirectory) throws -> Void

    /// `{"denied":[0,0,…]}`, or the same of pins.
    static func denying(_ value: String, _ count: Int) -> String {
      #"{"statement":{"denied":["# + Array(repeating: value, count: count).joined(separator: ",")
        + "]}}"
    }

    static let all: [File] = [
      File(testDescription: "none", read: nil) { _ in },
      File(testDescription: "a directory", read: nil) { directory in
        try directory.write("", to: "a.json/b")
      },
      File(testDescription: "as long as can be", read: most) { directory in
        try directory.write([UInt8](repeating: 0x20, count: most), to: "a.json")
      },
      File(testDescription: "a byte longer", read: 0) { directory in
        try directory.write([UInt8](repeating: 0x20, count: most + 1), to: "a.json")
      },
      File(testDescription: "a few tiny values", read: denying("0", 60_000).utf8.count) {
        try $0.write(denying("0", 60_000), to: "a.json")
      },
      File(testDescription: "many tiny values", read: 0) {
        try $0.write(denying("0", 70_000), to: "a.json")
      },
      File(testDescription: "many pins", read: denying(quotedPin, 70_000).utf8.count) {
        try $0.write(denying(quotedPin, 70_000), to: "a.json")
      },
    ]

    private static let quotedPin = "\"" + pin(1).base64 + "\""
  }

  @Test("is read if it can be a document, however many endpoints that has", arguments: File.all)
  func bounds(file: File) throws {
    let directory = try TemporaryDirectory()
    try file.make(directory)
    #expect(CopyFile.read(directory.path("a.json"))?.count == file.read)
  }

  @Test("is read if it is a document of many short names, each with all that can be said of it")
  func denseDocument() throws {
    let patterns = try (0..<9000).map { try HostPattern("\($0).ab") }
    var document = RegistryDocument(
      registry: "a.json",
      keys: patterns.map { RegistryKey(pattern: $0, pin: .success(pin(1)), expires: 2) })
    document.terms = .init(
      number: .init(epoch: 0, version: 1), issued: 1, expires: 2,
      hosts: patterns.map { HostSettings($0, enforces: true) }, removed: patterns)
    #expect(CopyFile.canBeDocument(try document.bytes(format1Key: nil)))
  }

  @Test("is opened only if a document can have its name")
  func names() async throws {
    let directory = try TemporaryDirectory()
    let signer = DocumentSigner(key: try testSigningKey.get())
    let bytes = try RegistryDocument(
      registry: "old.json",
      keys: [
        RegistryKey(pattern: try HostPattern("a.example"), pin: .success(pin(1)), expires: 2)
      ]
    ).bytes(format1Key: signer.key)
    let names = [
      "old.json", "OLD", ".old.json", "old json", "admin", "old.json.gz", "old.json.parts",
    ]
    for name in names + ["new.json"] { try directory.write(bytes, to: name) }
    let copies = LastCopies(store: nil, directory: directory.path(), signer: { signer })
    let all = await copies.all(but: ["new.json"], beside: [:])
    #expect(all?.map(\.file) == ["OLD", "old.json"])
  }
}
