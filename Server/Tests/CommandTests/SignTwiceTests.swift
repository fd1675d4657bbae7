import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Signing twice, and signing by two")
struct SignTwiceTests {
  private static let sign =
    "sign --key prv.pem --online-key online0.pem --issued \(Format2Stage.issued + 1)"

  @Test("one document signed to two files would be two statements of one number, which is told")
  func twoFiles() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let elsewhere = try await stage.run("\(Self.sign) app.json --out other.json")
    #expect(elsewhere.exitCode == 0)
    #expect(
      elsewhere.stderr.contains(
        "app.json stays as it was: sign the next statement after \(stage.path("other.json")), or 1.2 would be given"
      ), "\(elsewhere.stderr)")
    try FileManager.default.createSymbolicLink(
      atPath: stage.path("link.json"), withDestinationPath: "app.json")
    for out in ["link.json", "app.json"] {
      let same = try await stage.run("\(Self.sign) app.json --out \(out)")
      #expect(same.exitCode == 0 && !same.stderr.contains("stays as it was"), "\(same.stderr)")
    }
    try await stage.must("\(Self.sign) --previous app.json payload.json --out app.json")
  }

  @Test("a version that leaves hardly any other is told", arguments: [36_499, 36_500] as [Int64])
  func burntCounter(left: Int64) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let version = JSONNumber.greatestInteger - left
    let outcome = try await stage.run("\(Self.sign) --version \(version) app.json --out app.json")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(outcome.stderr.contains("\(left) are left in epoch 1") == (left < 36_500))
    // The next one is one more, and nobody can do anything about it.
    try await stage.must("\(Self.sign) app.json --out app.json")
  }

  @Test("members that this version does not know are left out, which is told")
  func unknownMembers() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    var document = try stage.json("app.json")
    var statement = try stage.statement()
    statement["quorum"] = .string("x")
    var host = try #require(statement["hosts"]?.arrayValue?.first?.objectValue)
    host["since"] = .number(1)
    statement["hosts"] = .array([.object(host)])
    document["statement"] = .object(statement)
    let key = try #require(try Format2Stage.keys.get()["online0"])
    document["statementSignatures"] = .array([
      try key.signature(.statement, over: statement).json
    ])
    try stage.directory.write(JSONValue.object(document).canonicalBytes, to: "app.json")
    let outcome = try await stage.run("\(Self.sign) app.json --out app.json")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(outcome.stderr.contains("has \"quorum\", \"hosts.since\", which this version does not"))
    #expect(try stage.statement()["quorum"] == nil)
    try await stage.must("\(Self.sign) app.json --out app.json")
  }

  @Test("keys sign-set by two at once, or by two on copies of their own, loses no signature")
  func twoSigners() async throws {
    let stage = try Format2Stage()
    func make() async throws {
      let made = try await stage.run(
        "keys sign-set --registry-name app.json --root root0.pub --root root1.pub"
          + " --root-threshold 2 --online online0.pub --sign-with prv.pem --out sets.json")
      #expect(made.exitCode == 0)
    }
    func signatures() throws -> Int {
      let json = try JSONValue(
        parsing: [UInt8](Data(contentsOf: stage.directory.file("sets.json"))))
      return json.arrayValue?.first?.objectValue?["signatures"]?.arrayValue?.count ?? 0
    }
    for _ in 0..<4 {
      try? FileManager.default.removeItem(at: stage.directory.file("sets.json"))
      try await make()
      async let one = stage.run("keys sign-set sets.json --sign-with root0.pem --out sets.json")
      async let other = stage.run("keys sign-set sets.json --sign-with root1.pem --out sets.json")
      #expect(try await [one.exitCode, other.exitCode] == [0, 0])
      #expect(try signatures() == 3)
    }
    try FileManager.default.removeItem(at: stage.directory.file("sets.json"))
    try await make()
    try FileManager.default.copyItem(
      at: stage.directory.file("sets.json"), to: stage.directory.file("copy.json"))
    _ = try await stage.run("keys sign-set copy.json --sign-with root0.pem --out copy.json")
    let last = try await stage.run("keys sign-set copy.json --sign-with root1.pem --out copy.json")
    #expect(last.exitCode == 0 && !last.stderr.contains("warning"), "\(last.stderr)")
    let united = try await stage.run(
      "keys sign-set sets.json --sign-with root1.pem --out copy.json")
    #expect(united.exitCode == 0 && !united.stderr.contains("warning"), "\(united.stderr)")
  }
}
