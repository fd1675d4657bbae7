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

  private func copy(_ stage: Format2Stage, _ name: String, to other: String) throws {
    try Data(contentsOf: stage.directory.file(name)).write(to: stage.directory.file(other))
  }

  private func refuse(_ stage: Format2Stage, _ line: String, _ says: String) async throws {
    let before = try Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    #expect(outcome.stderr.components(separatedBy: "hint:").count == 2, "\(outcome.stderr)")
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == before)
  }

  @Test("an older document that was put back is not signed anew, nor another one of the number")
  func putBack() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "first.json")
    let daily = "\(Self.sign) app.json --out app.json"
    try await stage.must("\(daily) --deny \(Format2Stage.otherPin)")
    try copy(stage, "app.json", to: "second.json")
    var status = stat()
    #expect(stat(stage.path("online0.pem.signed"), &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)

    try copy(stage, "first.json", to: "app.json")
    let says = "app.json is at 1.1, older than 1.2, the one that this key signed last, as "
    for line in [daily, "\(Self.sign) app.json", "\(daily) --previous app.json"] {
      try await refuse(stage, line, says)
    }
    // The good copy is gone on from, and what another machine signed after it.
    try copy(stage, "second.json", to: "app.json")
    try await stage.must(daily)
    try copy(stage, "app.json", to: "third.json")
    try FileManager.default.copyItem(
      at: stage.directory.file("online0.pem"), to: stage.directory.file("copy.pem"))
    let elsewhere = daily.replacing("online0.pem", with: "copy.pem")
    try await stage.must(elsewhere)
    try await stage.must(daily)
    #expect(try stage.statement()["version"] == .number(5))

    // The other machine's next one is a second 1.5.
    let held = try stage.client()
    try copy(stage, "third.json", to: "app.json")
    try await refuse(stage, elsewhere, "app.json is at 1.3, older than 1.4, ")
    let otherwise = "\(elsewhere) --older --deny \(CheckTests.pin("Y"))"
    try await stage.must(otherwise)
    try await refuse(stage, daily, "app.json is another 1.5 than the one that this key signed last")

    // Without a good copy clients are taken on from what they hold.
    try copy(stage, "first.json", to: "app.json")
    try await stage.must("\(daily) --older")
    #expect(try stage.statement()["version"] == .number(6))
    #expect(try stage.statement()["previous"]?.objectValue?["version"] == .number(5))
    let trust = try RegistryTrust(
      registry: "app.json", signingKey: try .init(Keys.signing.get().publicKeyPEM))
    let bytes = [UInt8](try Data(contentsOf: stage.directory.file("app.json")))
    #expect(held.update(with: bytes, under: trust, at: Format2Stage.issued).refusal == nil)
    try await stage.must(daily)
  }

  @Test("a document of another registry that the same keys signed is not taken for this one's")
  func otherName() async throws {
    let stage = try Format2Stage()
    let sign = "sign --key prv.pem --online-key prv.pem"
    for name in ["app.json", "staging.json"] {
      try await stage.must("\(sign) --first --registry-name \(name) payload.json --out \(name)")
    }
    try copy(stage, "staging.json", to: "app.json")
    try await refuse(
      stage, "\(sign) app.json --out app.json",
      "app.json is of the registry \"staging.json\", and no file that is named here is called that")
    try await stage.must("\(sign) --registry-name staging.json app.json --out app.json")
    try copy(stage, "app.json", to: "staging.json")
    try await stage.must("\(sign) staging.json --out staging.json")
    #expect(try stage.statement("staging.json")["version"] == .number(3))
  }

  @Test("what cannot be remembered is told once, and stops no daily job", arguments: [true, false])
  func forgetful(isDirectory: Bool) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    if isDirectory {
      try FileManager.default.createDirectory(
        at: stage.directory.file("online0.pem.signed"), withIntermediateDirectories: false)
    } else {
      try stage.directory.write("cut", to: "online0.pem.signed")
    }
    for version: JSONNumber in [2, 3] {
      let signed = try await stage.run("\(Self.sign) app.json --out app.json")
      #expect(signed.exitCode == 0, "\(signed.stderr)")
      let told = signed.stderr.components(separatedBy: "is not remembered beside the key").count - 1
      // A file that was damaged is written anew.
      #expect(told == (isDirectory || version == 2 ? 1 : 0), "\(signed.stderr)")
      #expect(try stage.statement()["version"] == .number(version))
    }
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
