import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

/// Three documents may be at hand: the input, what --previous names, and what --out takes the place of.
@Suite("sign, beside what it takes the place of")
struct SignReplacedTests {
  private static let daily = "sign --key prv.pem --online-key online0.pem"
  private static let rsa = "sign --key prv.pem --online-key prv.pem"

  /// The next key set, with online key 1 in place of 0.
  private func rotate(_ stage: Format2Stage) async throws {
    try await stage.must(
      "keys sign-set --previous sets.json --root root0.pub --online online1.pub"
        + " --sign-with root0.pem --out sets2.json")
  }

  private func copy(_ stage: Format2Stage, _ name: String, to other: String) throws {
    try Data(contentsOf: stage.directory.file(name)).write(to: stage.directory.file(other))
  }

  private func refuse(_ stage: Format2Stage, _ line: String, _ says: String) async throws {
    let before = try? Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run(line)
    #expect([1, 2].contains(outcome.exitCode) && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(line): \(outcome.stderr)")
    #expect(outcome.speaksProperly || outcome.stderr.hasPrefix("/"))
    #expect(outcome.stderr.components(separatedBy: "hint:").count == 2, "\(outcome.stderr)")
    #expect((try? Data(contentsOf: stage.directory.file("app.json"))) == before)
  }

  @Test("signs no payload of an older epoch that --previous does not name, whatever else it names")
  func oldInput() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "last.json")
    // What a thief of online key 0 publishes, in the epoch before.
    try stage.writePayload(Format2Stage.otherPin)
    try await stage.must("\(Self.daily) payload.json --out app.json --allow-loosening")
    try await rotate(stage)
    let next = "sign --key prv.pem --online-key online1.pem --key-sets sets2.json"
    try await refuse(
      stage, "\(next) --previous last.json app.json --out app.json", "app.json is of epoch 1, ")
    // The very same document under another name is the one that was named.
    try copy(stage, "last.json", to: "same.json")
    try await stage.must("\(next) --previous last.json same.json --out new.json")
    try await refuse(stage, "\(next) --previous new.json app.json", "app.json is of epoch 1, ")
    try await refuse(
      stage, "sign --key prv.pem --online-key online1.pem --previous new.json app.json",
      "app.json is of epoch 1, ")
  }

  @Test("signs nothing that is not above what it takes the place of")
  func number() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "epoch1.json")
    try await rotate(stage)
    // The command that began the epoch stays in cron.
    let begin =
      "sign --key prv.pem --online-key online1.pem --key-sets sets2.json --previous epoch1.json"
      + " payload.json --out app.json"
    try await stage.must(begin)
    try await refuse(stage, begin, "2.1 is not above 2.1, the number of ")
    // One document made from another, twice.
    try copy(stage, "app.json", to: "source.json")
    let again = "sign --key prv.pem --online-key online1.pem source.json --out app.json"
    try await stage.must(again)
    try await refuse(stage, again, "app.json goes on from that")
    // A named document that is older than the one in place.
    try await stage.must("\(again) --previous app.json")
    try await refuse(stage, "\(again) --previous source.json", "2.2 is not above 2.3, ")
    // Clients that saw 2.2 and 2.3 would tell a fork.
    for line in [again, "\(again) --previous source.json", begin] {
      try await refuse(stage, line + " --version 9", "app.json is at 2.3, and this would follow ")
    }
    try await stage.must("\(again) --previous app.json --version 9")
    #expect(try stage.statement()["version"] == .number(9))
    try await refuse(
      stage, "\(Self.daily) --previous epoch1.json payload.json --out app.json",
      "1.2 is not above 2.9, ")
  }

  @Test(
    "asks for --first where no statement is at hand: what is published may have been cut or stripped",
    arguments: [nil, #"{"keys":[]}"#, "{}", "stripped"] as [String?])
  func first(replaced: String?) async throws {
    let stage = try Format2Stage()
    if replaced == "stripped" {
      try await stage.must("sign --key prv.pem payload.json --out app.json")
    } else if let replaced {
      try stage.directory.write(replaced, to: "app.json")
    }
    let line = "\(Self.rsa) --registry-name app.json payload.json --out app.json"
    for numbered in ["", " --version 7"] {
      try await refuse(stage, line + numbered, "or --first says that there was none")
    }
    try await stage.must(line + " --first --version 7")
    #expect(try stage.statement()["version"] == .number(7))
    try await refuse(stage, line + " --first", "leave --first out")
    try await stage.must(line + " --version 9")
    #expect(try stage.statement()["version"] == .number(9))
  }

  @Test(
    "takes the place of no damaged document, unless a good copy is named",
    arguments: [#"{"payload":{"keys":"#, "", "[]"])
  func damaged(text: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "good.json")
    try stage.directory.write(text, to: "app.json")
    let line = "\(Self.daily) --key-sets sets.json payload.json --out app.json"
    try await refuse(stage, line, "app.json is there and is no JSON object: is it damaged? hint:")
    try await refuse(stage, line + " --first", "is it damaged?")
    try await refuse(stage, "\(Self.daily) good.json --out app.json", "is it damaged?")
    try await stage.must(line + " --previous good.json")
    #expect(try stage.statement()["version"] == .number(2))
  }

  @Test(
    "takes the place of no other file beside a good copy",
    arguments: [
      ("a: b\n", "no JSON object"), ("-----BEGIN PUBLIC KEY-----\n", "no JSON object"),
      ("\u{30}\u{1}", "no JSON object"), (#"[{"keySet":{}}]"#, "no JSON object"),
      (#"{"hosts":[]}"#, "neither document nor payload"),
    ])
  func otherFile(text: String, says: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "good.json")
    try stage.directory.write(text, to: "app.json")
    try await refuse(
      stage, "\(Self.daily) --key-sets sets.json --previous good.json payload.json --out app.json",
      "app.json is there and is \(says): is it damaged? hint: another --out, or remove it")
  }

  @Test("goes from statements that root keys signed to the first key set")
  func adoption() async throws {
    let stage = try Format2Stage()
    try await stage.must(
      "sign --first --online-key root0.pem --online-key root1.pem --registry-name app.json"
        + " payload.json --out app.json")
    for (root, chain) in [("root0", "rc1.json"), ("root2", "other.json")] {
      try await stage.must(
        "keys sign-set --registry-name app.json --root \(root).pub --online online0.pub"
          + " --sign-with \(root).pem --out \(chain)")
    }
    let line = "sign --online-key online0.pem --previous app.json payload.json --out app.json"
    try await refuse(stage, "\(line) --key-sets other.json", "is not as these keys signed it")
    try await stage.must("\(line) --key-sets rc1.json")
    #expect(try stage.statement()["epoch"] == .number(1))
  }

  @Test("leaves out no host of a document of format 1, nor of what --out takes the place of")
  func hosts() async throws {
    let stage = try Format2Stage()
    func write(_ hosts: [String]) throws {
      let keys = hosts.map { #"{"domainName":"\#($0)","key":"\#(Format2Stage.pin)"}"# }
      try stage.directory.write(
        #"{"keys":[\#(keys.joined(separator: ","))]}"#, to: "payload.json")
    }
    try write(["b.example", "c.example"])
    try await stage.must("sign --key prv.pem payload.json --out app.json")
    try write(["c.example"])
    let first = "--first --registry-name app.json payload.json --out"
    try await refuse(
      stage, "\(Self.rsa) \(first) app.json", "first statement of epoch 0 leaves out b.example: ")
    let named = try await stage.run("\(Self.rsa) \(first) epoch0.json")
    #expect(named.exitCode == 0)
    #expect(
      named.stderr.contains("the registry is \"app.json\", and a client asks for the last part"))
    try await stage.makeSet()
    try await refuse(
      stage,
      "\(Self.daily) --key-sets sets.json --previous epoch0.json payload.json --out app.json",
      "first statement of epoch 1 leaves out b.example: ")
  }

  @Test("warns where clients of format 1 lose their signature")
  func unsigned() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try copy(stage, "app.json", to: "signed.json")
    let again = "sign --online-key online0.pem --key-sets sets.json"
    let replacing = try await stage.run("\(again) payload.json --out app.json")
    #expect(replacing.exitCode == 0)
    #expect(replacing.stderr.contains("app.json has a signature of format 1"))
    try await stage.must("\(again) app.json --out app.json")
    let input = try await stage.run("\(again) --older signed.json")
    #expect(
      input.exitCode == 0 && input.stderr.contains("will refuse a document without; hint: --key"))
  }
}
