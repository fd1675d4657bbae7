import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@Suite("sign with --online-key")
struct SignStatementTests {
  static let settings =
    #"{"hosts":[{"domainName":"*.a.example","ca":["\#(Format2Stage.otherPin)"],"match":"any","#
    + #""enforce":true}],"denied":["\#(Format2Stage.otherPin)"],"removed":["b.example"]}"#

  @Test("one RSA key for everything makes format 2 of epoch 0")
  func oneKey() async throws {
    let stage = try Format2Stage()
    try await stage.must(
      "sign --first --key prv.pem --online-key prv.pem --registry-name app.json payload.json"
        + " --issued \(Format2Stage.issued) --out app.json")
    let client = try stage.client()
    #expect(client.stamp.version == .init(epoch: 0, version: 1))
    #expect(client.expires == Format2Stage.issued + 90 * Format2Stage.day)
    #expect(try stage.json("app.json")["keySets"] == nil)
  }

  @Test("says what the settings file says, and keeps it in the next statements")
  func settings() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(Self.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json --expires-days 30")
    let first = try #require(try stage.client().statement)
    #expect(first.hosts.map(\.pattern.description) == ["*.a.example"])
    #expect(first.hosts.map(\.match) == [.any] && first.hosts.map(\.enforces) == [true])
    #expect(first.hosts.flatMap(\.ca).map(\.base64) == [Format2Stage.otherPin])
    #expect(first.denied.map(\.base64) == [Format2Stage.otherPin])
    #expect(first.removed.map(\.description) == ["b.example"])
    #expect(first.expires == Format2Stage.issued + 30 * Format2Stage.day)

    let again =
      "sign --key prv.pem --online-key online0.pem app.json --out app.json --issued 1800000001"
    try await stage.must(again)
    let second = try #require(try stage.client().statement)
    #expect(second.number == .init(epoch: 1, version: 2))
    #expect(second.issued == Format2Stage.issued + 1)
    #expect(second.hosts == first.hosts && second.denied == first.denied)
    #expect(second.removed == first.removed)
    #expect(try stage.client().keySetEpoch == 1)
    // Only what is said anew changes.
    try stage.directory.write(#"{"denied":[]}"#, to: "settings.json")
    try await stage.must(again + " --statement settings.json --version 9 --allow-loosening")
    let third = try #require(try stage.client().statement)
    #expect(third.number.version == 9 && third.denied.isEmpty && third.hosts == first.hosts)
  }

  @Test("writes to --out whole or not at all, through a link, and to nothing but files")
  func out() async throws {
    let stage = try Format2Stage()
    let printed = try await stage.run("sign --key prv.pem payload.json")
    try FileManager.default.createSymbolicLink(
      atPath: stage.path("link.json"), withDestinationPath: stage.path("real.json"))
    try stage.directory.write("{}", to: "real.json")
    try await stage.must("sign --key prv.pem payload.json --out link.json")
    let written = try String(contentsOf: stage.directory.file("real.json"), encoding: .utf8)
    #expect(written == printed.stdout)
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: stage.path("link.json"))
        == stage.path("real.json"))
    try FileManager.default.createDirectory(
      atPath: stage.path("folder"), withIntermediateDirectories: false)
    for place in ["folder", "missing/app.json"] {
      let outcome = try await stage.run("sign --key prv.pem payload.json --out \(place)")
      #expect(outcome.exitCode == 3 && outcome.speaksProperly, "\(outcome.stderr)")
      #expect(outcome.stdout.isEmpty && outcome.stderr.contains("cannot write"))
    }
    let device = try await Tool.run(
      "sign", "--key", stage.path("prv.pem"), stage.path("payload.json"), "--out", "/dev/null")
    #expect(device.exitCode == 3 && device.stderr.contains("no file"))
  }

  @Test("goes on from --previous with another payload")
  func previous() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try stage.writePayload(Format2Stage.otherPin)
    try await stage.must(
      "sign --key prv.pem --online-key online0.pem --previous app.json payload.json --out app.json"
        + " --allow-loosening --issued 1800000001")
    let client = try stage.client()
    #expect(client.stamp.version == .init(epoch: 1, version: 2))
    #expect(client.registry.keys.map { try? $0.pin.get().base64 } == [Format2Stage.otherPin])
  }

  @Test("a retired statement sends clients back to format 1, and ends only if that is said")
  func retired() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let before = try stage.client()
    try await stage.must(
      "sign --key prv.pem --online-key root0.pem --retired --expires-days 3650 app.json"
        + " --out app.json --issued 1800000001")
    #expect(try stage.client().statement?.isRetired == true)
    #expect(try stage.client().statement?.expires == 1_800_000_001 + 3650 * Format2Stage.day)
    try await stage.must("sign --key prv.pem payload.json --out plain.json")
    let plain = [UInt8](try Data(contentsOf: stage.directory.file("plain.json")))
    let trust = try RegistryTrust(
      registry: "app.json", signingKey: try .init(Keys.signing.get().publicKeyPEM))
    #expect(
      before.update(with: plain, under: trust, at: Format2Stage.issued).refusal
        == .statementStripped)
    #expect(
      try stage.client().update(with: plain, under: trust, at: Format2Stage.issued).refusal == nil)
    // Cron still has the command.
    let after = "sign --key prv.pem --online-key online0.pem app.json"
    let refused = try await stage.run(after)
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    #expect(refused.stderr.contains("is retired until a statement ends that"))
    for (issued, cure) in [(2, "with minimumRegistry, as"), (1, "a statement issued after")] {
      let resumed = try await stage.run(
        "\(after) --end-retirement --issued \(1_800_000_000 + issued)")
      #expect(resumed.exitCode == 0)
      #expect(resumed.stderr.contains("can show the retirement that this ends"))
      #expect(resumed.stderr.contains(cure), "\(resumed.stderr)")
    }
  }

  @Test(
    "says no, or wrong usage, and writes nothing",
    arguments: [
      ("--key prv.pem --online-key online1.pem app.json", 1, "no online key of key set 1"),
      ("--key prv.pem --online-key root0.pem app.json", 1, "no online key of key set 1"),
      (
        "--key prv.pem --online-key online0.pem --online-key online0.pem app.json", 2, "given twice"
      ),
      ("--key prv.pem --online-key online0.pem --version 1 app.json", 1, "not above 1"),
      ("--key prv.pem --online-key online0.pem --expires-days 29 app.json", 2, "from 30 to"),
      ("--online-key online0.pem --key-sets sets.json --retired app.json", 2, "--key"),
      (
        "--key prv.pem --online-key online0.pem --registry-name other.json app.json", 1,
        "\"app.json\""
      ),
      (
        "--key prv.pem --online-key online0.pem --previous payload.json payload.json", 1,
        "no statement"
      ),
      (
        "--key prv.pem --online-key online0.pem --statement payload.json app.json", 1,
        "hint: hosts, denied"
      ),
      (
        "--key prv.pem --online-key online0.pem --statement bad.json app.json", 1,
        "denied is missing or malformed"
      ),
      (
        "--key prv.pem --online-key online0.pem --statement misspelt.json app.json", 1,
        "has \"enforced\", which no statement has; hint: domainName, ca, match, enforce"
      ),
      (
        "--key prv.pem --online-key online0.pem --key-sets other.json app.json", 1, "does not go on"
      ),
      ("--key prv.pem --online-key online0.pem --key-sets payload.json app.json", 1, "no key sets"),
      ("--key online0.pem app.json", 1, "signed with RSA"),
      ("--key prv.pem --version 5 app.json", 2, "--online-key"),
      ("--key prv.pem --retired app.json", 2, "--online-key"),
      ("--key prv.pem --deny x app.json", 2, "--online-key"),
      ("--key prv.pem --online-key online0.pem --deny x app.json", 2, "--deny x is no pin"),
      ("--key prv.pem --online-key online0.pem --end-retirement app.json", 2, "that was retired"),
      ("app.json", 2, "missing --key FILE"),
      ("--key prv.pem --online-key online0.pem --first app.json", 2, "leave --first out"),
      (
        "--key prv.pem --online-key prv.pem --registry-name app.json payload.json", 2,
        "or --first says"
      ),
      (
        "--online-key online0.pem app.json", 1,
        "vouches for the key sets of "
      ),
    ])
  func refused(flags: String, code: Int32, says: String) async throws {
    let stage = try Format2Stage()
    try stage.directory.write(#"{"denied":["x"]}"#, to: "bad.json")
    try stage.directory.write(
      #"{"hosts":[{"domainName":"a.example","enforced":true}]}"#, to: "misspelt.json")
    try await stage.must(
      "keys sign-set --registry-name app.json --root root0.pub --online online0.pub --expires 2000000000"
        + " --sign-with prv.pem --sign-with root0.pem --out other.json")
    try await stage.makeDocument()
    let bytes = try Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run("sign \(flags)")
    #expect(outcome.exitCode == code && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    #expect(outcome.speaksProperly || outcome.stderr.hasPrefix("/"), "\(outcome.stderr)")
    _ = try await stage.run("sign \(flags) --out app.json")
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == bytes)
  }

  @Test("asks for the registry's name where nothing that was published tells it")
  func name() async throws {
    let stage = try Format2Stage()
    let line = "sign --key prv.pem --online-key online0.pem payload.json --out app.json"
    let refused = try await stage.run(line + " --first")
    #expect(refused.exitCode == 2 && refused.stderr.contains("missing --registry-name"))
    #expect(!FileManager.default.fileExists(atPath: stage.path("app.json")))
    try await stage.makeDocument()
    try await stage.must(line)
    #expect(try stage.statement()["registry"] == .string("app.json"))
  }

  @Test("refuses a pin that is over before its statement begins, and writes nothing")
  func deadOnArrival() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let bytes = try Data(contentsOf: stage.directory.file("app.json"))
    // The payload's pin expires at 1900000000, and this statement is issued a second later.
    let again = "sign --key prv.pem --online-key online0.pem app.json --out app.json --issued"
    let refused = try await stage.run("\(again) 1900000001")
    #expect(refused.exitCode == 1 && refused.stdout.isEmpty)
    for part in [
      "the pin of *.a.example expires on 2030-03-17T17:46:40Z",
      "before its statement is issued on 2030-03-17T17:46:41Z", "hint: a later expire",
    ] { #expect(refused.stderr.contains(part), "\(refused.stderr)") }
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == bytes)
    try await stage.must("\(again) 1900000000")
    #expect(try stage.client(at: 1_900_000_000).statement?.number.version == 2)
  }

  @Test("goes on signing when a pin's time is over, and says so: cron jobs must not stop for it")
  func pinIsOver() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","expire":1700000000},"#
        + #"{"domainName":"a.example","key":"\#(Format2Stage.pin)"}]}"#, to: "payload.json")
    try await stage.makeSet()
    let signed = try await stage.run(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json payload.json"
        + " --first --out app.json")
    #expect(signed.exitCode == 0, "\(signed.stderr)")
    #expect(
      signed.stderr.contains("warning: a pin of a.example is over since 2023-11-14T22:13:20Z"))
    // The last one is another matter: the statement before serves the host for longer.
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","expire":1700000000},"#
        + #"{"domainName":"b.example","key":"\#(Format2Stage.pin)"}]}"#, to: "payload.json")
    let refused = try await stage.run(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json payload.json"
        + " --previous app.json --out other.json")
    #expect(refused.exitCode == 1)
    #expect(refused.stderr.contains("the last pin of its own of a.example is over since"))
    #expect(refused.stderr.contains("hint: is this machine's clock ahead?"))
  }

  @Test("warns before a statement gets lost, and before format-1 clients are")
  func warnings() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let stripped = try await stage.run("sign --key prv.pem app.json")
    #expect(stripped.exitCode == 0 && stripped.stderr.contains("hint: --online-key"))
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","ca":"x"}],"v":2}"#,
      to: "payload.json")
    let unknown = try await stage.run("sign --key prv.pem payload.json")
    #expect(unknown.exitCode == 0 && unknown.stderr.contains("leave out ca, v"))
  }
}
