import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

/// What clients hold already, and what they find elsewhere.
@Suite("verify, beside what is served")
struct VerifyServedTests {
  private static let at = "--at \(Format2Stage.issued + 5)"
  private static let sign =
    "sign --key prv.pem --online-key online0.pem --issued \(Format2Stage.issued + 1)"

  private func bytes(_ stage: Format2Stage, _ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: stage.directory.file(name)))
  }

  @Test("--previous refuses what clients have passed: signed after a backup, it is a fork or older")
  func passed() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try stage.directory.write(bytes(stage, "app.json"), to: "backup.json")
    // Whoever signs from a backup does so elsewhere: the key's own machine knows what it signed last.
    try FileManager.default.copyItem(
      at: stage.directory.file("online0.pem"), to: stage.directory.file("copy.pem"))
    let elsewhere = Self.sign.replacing("online0.pem", with: "copy.pem")
    for _ in 2...3 { try await stage.must("\(Self.sign) app.json --out app.json") }
    let served = try bytes(stage, "app.json")
    let server = try LocalHTTPServer { _ in HTTPResponse(body: served) }
    let url = "http://127.0.0.1:\(server.port)/app.json"
    let verify = "verify --key pub.pem \(Self.at) backup.json --registry-name app.json --previous"
    // The backup itself, one more (2, where clients are at 3), and another 3.
    for says in ["older", "older", "another"] {
      for held in ["app.json", url] {
        let outcome = try await stage.run("\(verify) \(held)")
        #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(says): \(outcome.stderr)")
        #expect(outcome.stderr.contains("clients that hold "), "\(outcome.stderr)")
      }
      try await stage.must(
        "\(elsewhere) --registry-name app.json --deny \(Format2Stage.otherPin) backup.json"
          + " --out backup.json")
    }
    // 4 goes on from 3, as far as a client can tell, and so does the same document.
    #expect(try await stage.run("\(verify) app.json").exitCode == 0)
    #expect(try await stage.run("\(verify) backup.json").exitCode == 0)
    let missing = try await stage.run("\(verify) nowhere.json")
    #expect(missing.exitCode == 3, "\(missing.stderr)")
    try stage.directory.write("{}", to: "empty.json")
    let empty = try await stage.run("\(verify) empty.json")
    #expect(empty.exitCode == 1 && empty.stderr.contains("is nothing that such clients hold"))
  }

  @Test("--save takes a document that clients go on to, and leaves the file as it is otherwise")
  func save() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let first = try bytes(stage, "app.json")
    try await stage.must("\(Self.sign) app.json --out app.json")
    let second = try bytes(stage, "app.json")
    let served = Locked(first)
    let server = try LocalHTTPServer { request in
      request.target == "/app.json"
        ? HTTPResponse(body: served.withLock { $0 }) : HTTPResponse(status: 404)
    }
    let shipped = stage.path("shipped.json")
    func refresh(_ document: [UInt8], _ more: String = "") async throws -> Int32 {
      served.withLock { $0 = document }
      return try await stage.run(
        "verify --key pub.pem \(Self.at) http://127.0.0.1:\(server.port)/app.json --save \(shipped) \(more)"
      ).exitCode
    }
    #expect(try await refresh(Array("{}".utf8)) == 1)
    #expect(!FileManager.default.fileExists(atPath: shipped))
    #expect(try await refresh(second) == 0)
    #expect(try bytes(stage, "shipped.json") == second)
    // A replay, a forgery, and the same once more.
    for (document, code) in [(first, Int32(1)), (second.dropLast(2) + [1, 2], 1), (second, 0)] {
      #expect(try await refresh(Array(document), "--previous \(shipped)") == code)
      #expect(try bytes(stage, "shipped.json") == second)
    }
  }

  @Test("of a URL looks at the mirrors, and warns of one that is silent, older or something else")
  func mirrors() async throws {
    let stage = try Format2Stage()
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    try stage.directory.write(authority.root.pem, to: "ca.pem")
    let served = Locked<[String: [UInt8]]>([:])
    let server = try LocalTLSServer(identity: authority.issue(names: ["localhost"])) { request in
      served.withLock { $0[request.target] }.map { HTTPResponse(body: $0) }
        ?? HTTPResponse(status: 404)
    }
    let base = "https://localhost:\(server.port)"
    let names = ["good", "older", "other", "none"]
    try await stage.makeDocument(
      names.map { "--mirror \(base)/\($0)/app.json" }.joined(separator: " "))
    let older = try bytes(stage, "app.json")
    try await stage.must("\(Self.sign) app.json --out app.json")
    let newest = try bytes(stage, "app.json")
    served.withLock {
      $0 = [
        "/app.json": newest, "/good/app.json": newest, "/older/app.json": older,
        "/other/app.json": Array("{}".utf8),
      ]
    }
    let outcome = try await stage.run(
      "verify --strict --key pub.pem \(Self.at) --ca ca.pem \(base)/app.json")
    let told = outcome.stderr.split(separator: "\n").filter { $0.contains("the mirror ") }
    #expect(outcome.exitCode == 1 && told.count == 3, "\(outcome.stderr)")
    for (name, says) in [
      ("older", "has statement 1.1, and "), ("other", "has no document that clients believe"),
      ("none", "404"),
    ] {
      #expect(told.contains { $0.contains("/\(name)/app.json") && $0.contains(says) }, "\(told)")
    }
    served.withLock { for name in names { $0["/\(name)/app.json"] = newest } }
    let whole = try await stage.run(
      "verify --strict --key pub.pem \(Self.at) --ca ca.pem \(base)/app.json")
    #expect(whole.exitCode == 0, "\(whole.stderr)")
  }
}
