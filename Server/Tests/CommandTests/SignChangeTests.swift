import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What servers that were let in meet under the next list is said before it is signed, in every format.
@Suite("sign and the servers that were let in")
struct SignChangeTests {
  private static let ca = SPKIPin(computed: Digest.sha256([3])).base64

  /// The ways to sign: what begins with a list, and what goes on from it.
  static let formats: [(first: String, next: String)] = [
    ("--key prv.pem", "--key prv.pem"),
    (
      "--first --key prv.pem --online-key prv.pem --registry-name app.json",
      "--key prv.pem --online-key prv.pem"
    ),
  ]

  private func write(_ entries: [String], to stage: Format2Stage) throws {
    let keys = entries.map { text in
      let words = text.split(separator: " ")
      let end = words.count > 2 ? #","expire":\#(words[2])"# : ""
      return #"{"domainName":"\#(words[0])","key":"\#(words[1])"\#(end)}"#
    }
    try stage.directory.write(#"{"keys":[\#(keys.joined(separator: ","))]}"#, to: "payload.json")
  }

  private func refuse(_ stage: Format2Stage, _ line: String, _ says: String) async throws {
    let before = try Data(contentsOf: stage.directory.file("app.json"))
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(line): \(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(line): \(outcome.stderr)")
    #expect(try Data(contentsOf: stage.directory.file("app.json")) == before)
  }

  private func warn(_ stage: Format2Stage, _ line: String, _ says: String?) async throws {
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 0, "\(line): \(outcome.stderr)")
    if let says {
      #expect(outcome.stderr.contains("warning: " + says), "\(line): \(outcome.stderr)")
    } else {
      #expect(outcome.stderr.isEmpty, "\(line): \(outcome.stderr)")
    }
  }

  @Test(
    "all leaf pins of a host are not replaced at once, unless that is meant", arguments: formats)
  func replaced(first: String, next: String) async throws {
    let stage = try Format2Stage()
    let (old, new) = (Format2Stage.pin, Format2Stage.otherPin)
    try write(["a.example \(old)", "b.example \(old)"], to: stage)
    try await stage.must("sign \(first) payload.json --out app.json")
    let line = "sign \(next) payload.json --out app.json"
    try write(["a.example \(new)", "b.example \(old)"], to: stage)
    try await refuse(stage, line, "a.example")
    try await refuse(stage, line, "hint: list both")
    // The way that the hint says.
    try write(["a.example \(old)", "a.example \(new)", "b.example \(old)"], to: stage)
    try await stage.must(line)
    try write(["a.example \(new)", "b.example \(old)"], to: stage)
    try await stage.must(line)
    try write(["a.example \(old)", "b.example \(old)"], to: stage)
    try await stage.must(line + " --allow-loosening")
  }

  @Test("what is over, denied or goes on under a wider pattern is not replaced")
  func notReplaced() async throws {
    let (old, new) = (Format2Stage.pin, Format2Stage.otherPin)
    let now = Int64(Date().timeIntervalSince1970)
    for (before, after, flags) in [
      (
        ["a.example \(old) \(now - 5 * 86_400)", "b.example \(old)"],
        ["a.example \(new)", "b.example \(old)"], ""
      ),
      (["a.example \(old)"], ["a.example \(new)", "*.example \(old)", "**.example \(old)"], ""),
      (["a.example \(old)"], ["a.example \(new)"], "--deny \(old)"),
    ] as [([String], [String], String)] {
      let stage = try Format2Stage()
      let (first, next) = flags.isEmpty ? Self.formats[0] : Self.formats[1]
      try write(before, to: stage)
      #expect(try await stage.run("sign \(first) payload.json --out app.json").exitCode == 0)
      try write(after, to: stage)
      let outcome = try await stage.run("sign \(next) payload.json --out app.json \(flags)")
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    }
  }

  @Test("the first CA pin of a host with leaf pins, and the reverse, is told to demand both")
  func grown() async throws {
    let stage = try Format2Stage()
    let (first, next) = Self.formats[1]
    func host(_ match: String) -> String {
      #"{"hosts":[{"domainName":"a.example","ca":["\#(Self.ca)"],"match":"\#(match)"}]}"#
    }
    try write(["a.example \(Format2Stage.pin)", "b.example \(Format2Stage.pin)"], to: stage)
    try await stage.must("sign \(first) payload.json --out app.json")
    try stage.directory.write(host("any"), to: "any.json")
    try stage.directory.write(host("all"), to: "all.json")
    let says = "servers of a.example need a leaf pin and a CA pin from now on"
    try await warn(stage, "sign \(next) app.json --statement all.json", says)
    try await warn(
      stage, "sign \(next) app.json --statement any.json --allow-loosening",
      "the statement takes back match all of a.example")
    try await warn(
      stage, "sign \(next) app.json --statement all.json --out app.json", says)
    // Said once, not daily.
    try await warn(stage, "sign \(next) app.json --out app.json", nil)
    let other = try Format2Stage()
    try write(["b.example \(Format2Stage.pin)"], to: other)
    try other.directory.write(host("all"), to: "all.json")
    try await other.must("sign \(first) payload.json --statement all.json --out app.json")
    try write(["a.example \(Format2Stage.pin)", "b.example \(Format2Stage.pin)"], to: other)
    try await warn(other, "sign \(next) payload.json --out app.json", says)
  }

  @Test("a host that leaves a list of format 1 is told")
  func gone() async throws {
    let stage = try Format2Stage()
    try write(["a.example \(Format2Stage.pin)", "b.example \(Format2Stage.pin)"], to: stage)
    try await stage.must("sign --key prv.pem payload.json --out app.json")
    try write(["b.example \(Format2Stage.pin)"], to: stage)
    try await warn(
      stage, "sign --key prv.pem payload.json --out app.json", "the payload leaves out a.example: ")
    try await warn(stage, "sign --key prv.pem payload.json --out app.json", nil)
  }

  @Test("another key does not sign over a list of format 1, unless nobody has that")
  func otherKey() async throws {
    let stage = try Format2Stage()
    try Keys.other.get().write(to: stage.directory.file("other.pem"))
    try await stage.must("sign --key prv.pem payload.json --out app.json")
    let line = "sign --key other.pem payload.json --out app.json"
    try await refuse(stage, line, "clients of that one would refuse another key's list")
    try await stage.must(line + " --first")
    try await refuse(
      stage, "sign --key prv.pem payload.json --out app.json", "--first says that nobody has it")
  }

  @Test("a retirement tells of last pins that it ends soon, and of CA pins that go with it")
  func retirement() async throws {
    let stage = try Format2Stage()
    let (first, next) = Self.formats[1]
    let now = Int64(Date().timeIntervalSince1970)
    try write(
      ["a.example \(Format2Stage.pin) \(now + 86_400)", "b.example \(Format2Stage.pin)"], to: stage)
    try stage.directory.write(
      #"{"hosts":[{"domainName":"b.example","ca":["\#(Self.ca)"]}]}"#, to: "settings.json")
    try await stage.must("sign \(first) payload.json --statement settings.json --out app.json")
    try stage.directory.write(#"{"hosts":[]}"#, to: "none.json")
    let retired = try await stage.run("sign \(next) --retired app.json --statement none.json")
    #expect(retired.exitCode == 0)
    for says in [
      "the last pin of a.example ends on ",
      "CA pins and enforce of b.example end with the retirement",
    ] {
      #expect(retired.stderr.contains("warning: " + says), "\(retired.stderr)")
    }
  }

  @Test("a key set that ends within 30 days is told each time that something is signed under it")
  func keySetEnds() async throws {
    let stage = try Format2Stage()
    for (days, isTold) in [(1, true), (29, true), (40, false)] as [(Int64, Bool)] {
      let end = Int64(Date().timeIntervalSince1970) + days * 86_400
      try await stage.must(
        "keys sign-set --registry-name app.json --root root0.pub --online online0.pub"
          + " --sign-with prv.pem --sign-with root0.pem --expires \(end) --out \(days).json")
      let outcome = try await stage.run(
        "sign --first --key prv.pem --online-key online0.pem --key-sets \(days).json payload.json")
      #expect(outcome.exitCode == 0)
      #expect(outcome.stderr.contains("nothing new is accepted under key set 1 from ") == isTold)
    }
  }
}
