import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// S is the key that the host shows, and N another one.
@Suite("sign and a leaf key that other keys take the place of")
struct SignSwapTests {
  private static let shown = Format2Stage.pin
  private static let new = Format2Stage.otherPin
  private static let third = SPKIPin(computed: Digest.sha256([3])).base64
  private static let fourth = SPKIPin(computed: Digest.sha256([4])).base64

  /// The ways to begin with a list, and to go on from it.
  enum Form: CaseIterable, Sendable {
    case format1, statement, retired
  }

  private func write(_ entries: [String], to stage: Format2Stage) throws {
    let pins = ["S": Self.shown, "N": Self.new, "T": Self.third]
    let keys = (entries + ["b.other S"]).map { text in
      let words = text.split(separator: " ").map(String.init)
      return #"{"domainName":"\#(words[0])","key":"\#(pins[words[1]] ?? "")"}"#
    }
    try stage.directory.write(#"{"keys":[\#(keys.joined(separator: ","))]}"#, to: "payload.json")
  }

  /// `app.json` has the list.
  private func stage(_ form: Form, _ entries: [String]) async throws -> Format2Stage {
    let stage = try Format2Stage()
    try write(entries, to: stage)
    let first = "--first --key prv.pem --online-key prv.pem --registry-name app.json"
    switch form {
    case .format1: try await stage.must("sign --key prv.pem payload.json --out app.json")
    case .statement: try await stage.must("sign \(first) payload.json --out app.json")
    case .retired:
      try await stage.makeSet()
      try await stage.must(
        "sign --first --key prv.pem --online-key root0.pem --key-sets sets.json payload.json --retired"
          + " --out app.json")
    }
    return stage
  }

  private func line(_ form: Form) -> String {
    "sign --key prv.pem \(form == .statement ? "--online-key prv.pem " : "")payload.json --out app.json"
  }

  @Test(
    "is refused under a narrower and under a wider pattern, unless it is meant",
    arguments: [
      ("**.localhost S", "localhost N", "localhost"),
      ("localhost S", "**.localhost N", "localhost"),
      ("**.localhost S", "*.localhost N", "*.localhost"),
      ("*.localhost S", "**.localhost N", "*.localhost"),
      ("**.localhost S", "a.b.localhost N", "a.b.localhost"),
      ("a.localhost S", "*.localhost N", "a.localhost"),
      ("**.a.localhost S", "*.localhost N", "**.a.localhost"),
    ], Form.allCases)
  func moved(lists: (before: String, after: String, host: String), form: Form) async throws {
    let stage = try await stage(form, [lists.before])
    let (before, line) = (try stage.json("app.json"), line(form))
    try write([lists.after], to: stage)
    let outcome = try await stage.run(line)
    let says = [
      "replaces all leaf pins of \(lists.host): ",
      "leaves out \(lists.host), and a wider pattern matches hosts of it: clients would let go",
    ]
    #expect(outcome.exitCode == 1, "\(outcome.stderr)")
    #expect(says.contains { outcome.stderr.contains($0) }, "\(outcome.stderr)")
    #expect(try stage.json("app.json") == before)
    // The way that the hint says.
    try write([lists.before, lists.after, lists.after.replacing(" N", with: " S")], to: stage)
    #expect(try await stage.run(line).exitCode == 0)
    let other = try await self.stage(form, [lists.before])
    try write([lists.after], to: other)
    let meant = try await other.run(line + " --allow-loosening")
    #expect(meant.exitCode == 0, "\(meant.stderr)")
    // It is told all the same: the flag may be meant for another host.
    let told = [
      "replaces all leaf pins of \(lists.host): ", "takes back the pins of \(lists.host): ",
    ]
    #expect(told.contains { meant.stderr.contains($0) }, "\(meant.stderr)")
  }

  @Test("is refused where removed names the wider pattern and another one lists the host")
  func removed() async throws {
    let stage = try await stage(.statement, ["**.localhost S"])
    try write(["localhost N"], to: stage)
    try stage.directory.write(#"{"removed":["**.localhost"]}"#, to: "settings.json")
    let outcome = try await stage.run(line(.statement) + " --statement settings.json")
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("replaces all leaf pins of localhost: "), "\(outcome.stderr)")
  }

  @Test(
    "is told where --deny names the key, and refused where one goes that is not denied",
    arguments: [
      (
        ["a.example S"], ["a.example N"],
        "warning: all leaf pins that a.example had are denied from now on", 0
      ),
      (
        ["**.example S"], ["a.example N"],
        "warning: all leaf pins that a.example had are denied from now on", 0
      ),
      (["a.example S", "a.example N"], ["a.example N"], nil, 0),
      (
        ["a.example S", "a.example T"], ["a.example N"], "replaces all leaf pins of a.example: ", 1
      ),
    ] as [([String], [String], String?, Int32)])
  func denied(before: [String], after: [String], says: String?, code: Int32) async throws {
    let stage = try await stage(.statement, before)
    try write(after, to: stage)
    let outcome = try await stage.run(line(.statement) + " --deny \(Self.shown)")
    #expect(outcome.exitCode == code, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says ?? "leaf pins") == (says != nil), "\(outcome.stderr)")
  }

  @Test(
    "is told where a denial takes all leaf or all CA pins, also where the others are enough",
    arguments: [
      ("any", Self.shown, "leaf"), ("all", Self.shown, "leaf"), ("any", Self.third, "CA"),
      ("all", Self.third, "CA"),
    ], [true, false])
  func deniedRole(denial: (match: String, pin: String, role: String), isLast: Bool) async throws {
    let stage = try await stage(.statement, [])
    func settings(_ pins: [String]) throws {
      let ca = pins.map { "\"\($0)\"" }.joined(separator: ",")
      try stage.directory.write(
        #"{"hosts":[{"domainName":"a.example","ca":[\#(ca)],"match":"\#(denial.match)"}]}"#,
        to: "settings.json")
    }
    let line = line(.statement) + " --statement settings.json"
    try settings([Self.third])
    try write(["a.example S"], to: stage)
    try await stage.must(line)
    try stage.directory.write(
      [UInt8](try Data(contentsOf: stage.directory.file("app.json"))), to: "before.json")
    try settings(isLast ? [Self.third] : [Self.third, Self.fourth])
    try write(isLast ? ["a.example S"] : ["a.example S", "a.example N"], to: stage)
    let outcome = try await stage.run(line + " --deny \(denial.pin)")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let verified = try await stage.run("verify --key pub.pem app.json --previous before.json")
    #expect(verified.exitCode == 0, "\(verified.stderr)")
    // Where nobody is let in any more, that is told.
    let says =
      isLast && denial.match == "all"
      ? "a.example has no " : "all \(denial.role) pins that a.example had are denied from now on"
    for told in [outcome.stderr, verified.stderr] {
      #expect(told.contains("warning: ") && told.contains(says), "\(told)")
    }
  }

  @Test("in two steps is told at the first, which no later list knows of", arguments: Form.allCases)
  func twoSteps(form: Form) async throws {
    let stage = try await stage(form, ["a.example S"])
    try write([], to: stage)
    let outcome = try await stage.run(line(form))
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let says = "a later list that has it again replaces the pins that are kept, all at once; hint: "
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    try write(["a.example N"], to: stage)
    try await stage.must(line(form))
  }

  @Test("is refused as well in a list that was signed elsewhere before")
  func staged() async throws {
    let stage = try await stage(.format1, ["a.example S"])
    try write(["a.example N"], to: stage)
    try await stage.must("sign --key prv.pem payload.json --out other.json")
    let outcome = try await stage.run("sign --key prv.pem other.json --out app.json")
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("replaces all leaf pins of a.example: "), "\(outcome.stderr)")
  }

  @Test("verify --previous tells the same of a list that was signed elsewhere")
  func verified() async throws {
    let stage = try await stage(.format1, ["**.example S", "c.test S"])
    for (after, says) in [
      (["a.example N", "c.test S"], "the payload replaces all leaf pins of a.example: "),
      (["**.example S"], "the payload leaves out c.test: clients keep the last pins for 30 days, "),
      (["**.example S", "c.test S", "c.test N"], nil),
    ] as [([String], String?)] {
      try write(after, to: stage)
      try await stage.must("sign --key prv.pem payload.json --out other.json")
      let verify = "verify --strict --key pub.pem other.json"
      try await stage.must(verify)
      let outcome = try await stage.run(verify + " --previous app.json")
      #expect(outcome.exitCode == (says == nil ? 0 : 1), "\(outcome.stderr)")
      #expect(outcome.stderr.contains("warning: " + (says ?? "")) == (says != nil))
      try FileManager.default.removeItem(at: stage.directory.file("other.json"))
    }
  }

  @Test("a CA pin is not exchanged under a narrower pattern either")
  func authority() async throws {
    let stage = try await stage(.statement, [])
    func settings(_ host: String, _ pin: String, _ more: String = "") throws {
      try stage.directory.write(
        #"{"hosts":[{"domainName":"\#(host)","ca":["\#(pin)"]}]\#(more)}"#, to: "settings.json")
    }
    try settings("**.a.example", Self.third)
    let line = line(.statement) + " --statement settings.json"
    try await stage.must(line)
    try settings("a.example", Self.new, #","removed":["**.a.example"]"#)
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 1)
    #expect(
      outcome.stderr.contains("says: the CA pins of a.example, all of them; hint: "),
      "\(outcome.stderr)")
  }

  @Test("a denied CA that stays on the list hides no exchange of the others")
  func deniedAuthority() async throws {
    let stage = try await stage(.statement, [])
    let denied = #","denied":["\#(Self.third)"]"#
    func settings(_ pin: String, _ more: String) throws {
      try stage.directory.write(
        #"{"hosts":[{"domainName":"a.example","ca":["\#(Self.third)","\#(pin)"]}]\#(more)}"#,
        to: "settings.json")
    }
    let line = line(.statement) + " --statement settings.json"
    let (one, other) = (CheckTests.pin("Y"), CheckTests.pin("Z"))
    try settings(one, denied)
    try await stage.must(line)
    try settings(other, denied)
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == 1)
    #expect(
      outcome.stderr.contains("says: the CA pins of a.example, all of them; hint: "),
      "\(outcome.stderr)")
  }
}
