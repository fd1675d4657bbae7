import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What stands where documents are published is not the operator's word: others write there, too.
@Suite("sign goes on from what is published")
struct SignPublishedTests {
  private static let first = "--first --key prv.pem --online-key prv.pem --registry-name app.json"
  private static let daily = "--key prv.pem --online-key online0.pem"

  private func bytes(_ stage: Format2Stage, _ name: String = "app.json") throws -> Data {
    try Data(contentsOf: stage.directory.file(name))
  }

  private func edit(_ stage: Format2Stage, _ old: String, _ new: String) throws {
    let text = String(decoding: try bytes(stage), as: UTF8.self)
    #expect(text.contains(old))
    try stage.directory.write(text.replacingOccurrences(of: old, with: new), to: "app.json")
  }

  @Test(
    "signs what these keys signed, and nothing that was changed since",
    arguments: [
      ("--key prv.pem payload.json", "--key prv.pem app.json"),
      ("\(first) payload.json", "--key prv.pem --online-key prv.pem app.json"),
      (
        "--first --online-key prv.pem --registry-name app.json payload.json",
        "--online-key prv.pem app.json"
      ),
      ("--first \(daily) --key-sets sets.json payload.json", "\(daily) app.json"),
      (
        "--first --online-key online0.pem --key-sets sets.json payload.json",
        "--online-key online0.pem --key-sets sets.json app.json"
      ),
      (
        "--first \(daily) --key-sets sets.json payload.json",
        "\(daily) --key-sets sets.json app.json"
      ),
      (
        "--first \(daily) --key-sets sets.json payload.json",
        "\(daily) --previous app.json payload.json"
      ),
      ("--first \(daily) --key-sets sets.json payload.json", "\(daily) payload.json"),
    ])
  func changed(first: String, again: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    try await stage.must("sign \(first) --out app.json")
    try await stage.must("sign \(again) --out app.json")
    if try stage.json("app.json")["statement"] != nil {
      #expect(try stage.statement()["version"] == .number(2))
    }
    try edit(stage, "\"key\":\"\(Format2Stage.pin)", "\"key\":\"\(Format2Stage.otherPin)")
    let bytes = try bytes(stage)
    let refused = try await stage.run("sign \(again) --out app.json")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty && refused.speaksProperly)
    #expect(refused.stderr.contains("app.json is not as these keys signed it: "))
    #expect(refused.stderr.components(separatedBy: "hint:").count == 2, "\(refused.stderr)")
    #expect(try self.bytes(stage) == bytes)
  }

  @Test("takes no settings from a statement that was changed")
  func settings() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    try edit(stage, "\"denied\":[\"\(Format2Stage.otherPin)\"]", "\"denied\":[]")
    for line in ["app.json", "--previous app.json payload.json"] {
      let refused = try await stage.run("sign \(Self.daily) \(line)")
      #expect(refused.exitCode == 1 && refused.stdout.isEmpty, "\(refused.stderr)")
      #expect(refused.stderr.contains("the online keys of epoch 1"), "\(refused.stderr)")
    }
  }

  @Test("believes no key sets that a document made up around the online key")
  func foreignChain() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let good = try bytes(stage)
    try await stage.must(
      "keys sign-set --registry-name app.json --root root1.pub --online online0.pub"
        + " --online online1.pub --sign-with root1.pem --out forged.json")
    // Online keys and their signatures are public: only the chain around them is new.
    var forged = try stage.json("app.json")
    forged["keySets"] = try JSONValue(
      parsing: [UInt8](Data(contentsOf: stage.directory.file("forged.json"))))
    try stage.directory.write(JSONValue.object(forged).canonicalBytes, to: "app.json")
    for line in ["--online-key online0.pem app.json", "\(Self.daily) payload.json --out app.json"] {
      let refused = try await stage.run("sign \(line)")
      #expect(refused.exitCode == 1 && refused.stdout.isEmpty && refused.speaksProperly)
      #expect(refused.stderr.contains("hint: --key-sets FILE, as "), "\(refused.stderr)")
    }
    let other = try await stage.run(
      "sign \(Self.daily) --key-sets sets.json app.json --out app.json")
    #expect(other.exitCode == 1 && other.stderr.contains("name a good copy with --previous"))
    try good.write(to: stage.directory.file("good.json"))
    try await stage.must(
      "sign \(Self.daily) --key-sets sets.json --previous good.json payload.json --out app.json")
    #expect(try stage.json("app.json")["keySets"] == stage.json("good.json")["keySets"])
  }

  @Test("goes on from a document that the keys before signed, under the chain that leads on")
  func nextEpoch() async throws {
    let stage = try Format2Stage()
    try await stage.must("sign \(Self.first) payload.json --out app.json")
    try await stage.makeSet()
    try await stage.must(
      "sign \(Self.daily) --key-sets sets.json app.json --previous app.json --out app.json")
    #expect(try stage.statement()["epoch"] == .number(1))
    try await stage.must(
      "keys sign-set --previous sets.json --root root0.pub --online online1.pub"
        + " --sign-with root0.pem --out sets.json")
    let next =
      "sign --key prv.pem --online-key online1.pem --key-sets sets.json app.json --previous app.json"
    let good = try bytes(stage)
    try edit(stage, "\"removed\":[]", "\"removed\":[\"b.example\"]")
    #expect(try await stage.run(next).exitCode == 1)
    try good.write(to: stage.directory.file("app.json"))
    try await stage.must(next + " --out app.json")
    #expect(try stage.statement()["epoch"] == .number(2))
  }

  @Test("takes nothing over from another epoch unless it is named: a thief may have had its key")
  func stolen() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    try await stage.must(
      "keys sign-set --previous sets.json --root root0.pub --online online1.pub"
        + " --sign-with root0.pem --out sets.json")
    let bytes = try bytes(stage)
    let next = "--online-key online1.pem --key-sets sets.json --out app.json"
    for line in ["--key prv.pem \(next) app.json", "--key prv.pem \(next) payload.json"] {
      let refused = try await stage.run("sign \(line)")
      #expect(refused.exitCode == 1 && refused.stdout.isEmpty && refused.speaksProperly)
      #expect(
        refused.stderr.contains("app.json is of epoch 1, "), "\(refused.stderr)")
    }
    let refused = try await stage.run("sign \(next) app.json --previous app.json")
    #expect(refused.exitCode == 1 && refused.speaksProperly)
    #expect(refused.stderr.contains("vouch for the payload of "), "\(refused.stderr)")
    #expect(try self.bytes(stage) == bytes)
    try await stage.must("sign --key prv.pem \(next) payload.json --previous app.json")
    #expect(try stage.statement()["epoch"] == .number(2))
    // Cron goes on from there.
    try await stage.must("sign --key prv.pem --online-key online1.pem app.json --out app.json")
  }

  @Test("signs its own document anew, however long it has been over")
  func expired() async throws {
    let stage = try Format2Stage()
    let key = try Keys.signing.get()
    let payload = try stage.json("payload.json")
    let terms = RegistryDocument.Terms(
      number: .init(epoch: 0, version: 7), issued: 1_500_000_000, expires: 1_500_000_001)
    let document = RegistryDocument(registry: "app.json", payload: payload, terms: terms)
    let old = try document.bytes(format1Key: key, onlineKeys: [key.trustKey])
    try stage.directory.write(String(decoding: old, as: UTF8.self), to: "app.json")
    try await stage.must("sign --key prv.pem --online-key prv.pem app.json --out app.json")
    #expect(try stage.statement()["version"] == .number(8))
  }

  @Test("--out over a published document goes on from it, or says that clients need a statement")
  func replaced() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    let before = try #require(try stage.client().statement)
    let again = "sign \(Self.daily) --key-sets sets.json payload.json --registry-name"
    try await stage.must("\(again) app.json --issued \(Format2Stage.issued) --out app.json")
    let after = try #require(try stage.client().statement)
    #expect(after.number == .init(epoch: 1, version: 2))
    #expect(after.denied == before.denied && after.removed == before.removed)
    #expect(after.hosts == before.hosts)
    let plain = try await stage.run("sign --key prv.pem payload.json --out app.json")
    #expect(
      plain.exitCode == 1 && plain.stderr.contains("app.json would refuse a document without"))
    #expect(try stage.client().statement?.number == after.number)
  }

  @Test("begins no epoch without a host that was listed; later it warns of those that vanish")
  func hosts() async throws {
    let stage = try Format2Stage()
    let one = #"{"domainName":"c.example","key":"\#(Format2Stage.pin)"}"#
    let two = #"{"domainName":"b.example","key":"\#(Format2Stage.pin)"}"#
    try stage.directory.write(#"{"keys":[\#(one),\#(two)]}"#, to: "payload.json")
    try await stage.must("sign \(Self.first) payload.json --out app.json")
    let bytes = try bytes(stage)
    try stage.directory.write(#"{"keys":[\#(one)]}"#, to: "payload.json")
    try await stage.makeSet()
    let begin =
      "sign \(Self.daily) --key-sets sets.json payload.json --previous app.json --out app.json"
    let refused = try await stage.run(begin)
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(refused.stderr.contains("first statement of epoch 1 leaves out b.example: "))
    #expect(try self.bytes(stage) == bytes)
    let same = try await stage.run(
      "sign --key prv.pem --online-key prv.pem payload.json --out app.json")
    #expect(same.exitCode == 0, "\(same.stderr)")
    #expect(
      same.stderr.contains("warning: clients that saw b.example in epoch 0 keep the last pins, "))
    try bytes.write(to: stage.directory.file("app.json"))
    try stage.directory.write(#"{"removed":["b.example"]}"#, to: "settings.json")
    try await stage.must(begin + " --statement settings.json")
  }

  @Test("signs no statement that is over already")
  func over() async throws {
    let stage = try Format2Stage()
    let refused = try await stage.run(
      "sign \(Self.first) payload.json --issued 1500000000 --expires-days 30")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(refused.stderr.contains("over since 2017-08-13T02:40:00Z"), "\(refused.stderr)")
  }

  @Test("warns of keys that apps do not ship")
  func warnings() async throws {
    let stage = try Format2Stage()
    let other = try await stage.run(
      "sign --first \(Self.daily) --registry-name app.json payload.json")
    #expect(other.exitCode == 0 && other.stderr.contains("--key is none of the online keys"))
    try await stage.must(
      "keys sign-set --registry-name app.json --root root0.pub --online online0.pub"
        + " --sign-with root0.pem --out sets.json")
    let unsigned = try await stage.run(
      "sign --first \(Self.daily) --key-sets sets.json payload.json")
    #expect(unsigned.exitCode == 0 && unsigned.stderr.contains("--key did not sign key set 1"))
  }
}
