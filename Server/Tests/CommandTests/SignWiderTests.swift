import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What vanished keeps its pins only where no listed pattern matches it.
@Suite("sign and the hosts that a wider pattern matches")
struct SignWiderTests {
  private static let daily =
    "sign --key prv.pem --online-key online0.pem payload.json --out app.json"
  private static let pin = Format2Stage.pin
  private static let other = Format2Stage.otherPin
  static let thirdPin = SPKIPin(computed: Digest.sha256([3])).base64
  private static let ca = thirdPin

  /// Two lists, one after the other, with settings beside each.
  struct Step: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Entries as `pattern key` or `pattern key expire`, beside one of b.other.
    var before = ["a.example \(pin)"]
    var after: [String] = []
    /// Members of the statement, and those that the next one has in their place.
    var settings = "{}"
    var next: String?
    /// What the refusal says; `nil` where the list is signed.
    var says: String?
    /// Whether clients are told to keep the pins.
    var isKept = false
    /// Whether --allow-loosening has it signed.
    var isAllowed = true
  }

  private static func hosts(_ pattern: String, _ more: String) -> String {
    #"{"hosts":[{"domainName":"\#(pattern)",\#(more)}]}"#
  }

  private static let left =
    "the payload leaves out a.example, and a wider pattern matches hosts of it"
  private static let leaf =
    "1.1 says: the leaf pins of a.example; hint: list the pins once more, or --allow-loosening if"
  private static let caPin = #""ca":["\#(ca)"]"#
  private static let anyCA = caPin + #","match":"any""#
  private static let matchAll = "1.1 says: match all of a.example; hint: "

  static let steps = [
    Step(
      testDescription: "CA pins of a wider pattern", settings: hosts("**.example", caPin),
      says: left
    ),
    Step(
      testDescription: "another key of a wider pattern",
      before: ["a.example \(pin)", "*.example \(other)"],
      after: ["*.example \(other)"], says: left),
    Step(
      testDescription: "the same key of a wider pattern",
      before: ["a.example \(pin)", "*.example \(pin)"],
      after: ["*.example \(pin)"]),
    Step(
      testDescription: "one of two keys", before: ["a.example \(pin)", "a.example \(other)"],
      after: ["*.example \(other)"]),
    Step(
      testDescription: "the same key, which is over",
      after: ["*.example \(pin) 1700000000", "*.example \(other)"], says: left),
    Step(
      testDescription: "the same key, which is denied",
      after: ["*.example \(pin)", "*.example \(other)"],
      next: #"{"denied":["\#(pin)"]}"#, says: left),
    Step(
      testDescription: "named in removed", after: ["*.example \(other)"],
      next: #"{"removed":["a.example"]}"#),
    Step(testDescription: "a pattern beside it", after: ["*.a.example \(other)"], isKept: true),
    Step(
      testDescription: "a wider pattern in removed alone", next: #"{"removed":["*.example"]}"#,
      isKept: true),
    Step(
      testDescription: "hosts without any pin", next: hosts("**.example", #""enforce":true"#),
      says: "the payload leaves out all pins of a.example, ", isAllowed: false),
    Step(
      testDescription: "listed still, under a wider pattern with its key",
      before: ["a.example \(pin)", "*.example \(pin)"], after: ["*.example \(pin)"],
      settings: hosts("a.example", #""enforce":true"#)),
    Step(
      testDescription: "listed still, under a wider pattern with another key",
      before: ["a.example \(pin)", "*.example \(other)"], after: ["*.example \(other)"],
      settings: hosts("a.example", #""enforce":true"#), says: leaf),
    Step(
      testDescription: "the wider pattern whose leaf pin it needed", before: ["*.example \(pin)"],
      settings: hosts("a.example", caPin), says: leaf, isKept: true),
    Step(
      testDescription: "the same, and removed",
      before: ["*.example \(pin)"], settings: hosts("a.example", caPin),
      next: #"{"removed":["*.example"]}"#, says: leaf),
    Step(
      testDescription: "another wider pattern needs a leaf pin as well",
      before: ["*.example \(pin)", "**.example \(pin)"], after: ["**.example \(pin)"],
      settings: hosts("a.example", caPin)),
    Step(
      testDescription: "an apex that another key of a pattern is for",
      before: ["**.a.example \(pin)", "*.example \(other)"], after: ["*.example \(other)"],
      says: "leaves out **.a.example, and a wider pattern matches hosts of it", isKept: true),
    Step(
      testDescription: "an apex that CA pins of a pattern are for", before: ["**.a.example \(pin)"],
      settings: hosts("*.example", caPin),
      says: "leaves out **.a.example, and a wider pattern matches hosts of it", isKept: true),
    Step(
      testDescription: "an apex that the same key of a pattern is for",
      before: ["**.a.example \(pin)", "*.example \(pin)"], after: ["*.example \(pin)"],
      isKept: true),
    Step(
      testDescription: "an apex with an entry of its own",
      before: ["**.a.example \(pin)", "a.example \(other)"], after: ["a.example \(other)"],
      isKept: true),
    Step(
      testDescription: "all but an apex that the same key of a pattern is for",
      before: ["**.a.example \(pin)", "*.example \(pin)"], after: ["*.example \(pin)"],
      settings: hosts("**.a.example", caPin), says: "the leaf pins of **.a.example; hint: "),
    Step(
      testDescription: "the leaf pin that an apex needed", before: ["*.example \(pin)"],
      settings: hosts("**.a.example", caPin), says: "the leaf pins of **.a.example; hint: ",
      isKept: true),
    Step(
      testDescription: "the same key of a wider pattern with match any",
      before: ["a.example \(pin)", "*.example \(pin)"], after: ["*.example \(pin)"],
      settings: hosts("*.example", anyCA), says: matchAll),
    Step(
      testDescription: "the same, and removed",
      before: ["a.example \(pin)", "*.example \(pin)"], after: ["*.example \(pin)"],
      settings: hosts("*.example", anyCA), next: #"{"removed":["a.example"]}"#),
    Step(
      testDescription: "nothing under a wider pattern with match any",
      before: ["a.example \(pin)", "*.example \(pin)"],
      after: ["a.example \(pin)", "*.example \(pin)"], settings: hosts("*.example", anyCA)),
    Step(
      testDescription: "a wider pattern with match all above one with any",
      before: ["a.example \(pin)", "*.example \(other)"], after: ["a.example \(pin)"],
      settings: hosts("a.example", anyCA), says: matchAll, isKept: true),
    Step(
      testDescription: "one of two patterns with match all",
      before: ["a.example \(pin)", "*.example \(pin)", "**.example \(pin)"],
      after: ["*.example \(pin)", "**.example \(pin)"], settings: hosts("*.example", anyCA)),
    Step(
      testDescription: "settings with match all above a wider pattern with any",
      before: ["*.example \(pin)"], after: ["*.example \(pin)"],
      settings: #"{"hosts":[{"domainName":"a.example"},{"domainName":"*.example",\#(anyCA)}]}"#,
      next: hosts("*.example", anyCA), says: matchAll),
  ]

  private func write(_ entries: [String], to stage: Format2Stage) throws {
    let keys = (entries + ["b.other \(Self.pin)"]).map { entry in
      let words = entry.split(separator: " ")
      let end = words.count > 2 ? ",\"expire\":\(words[2])" : ""
      return #"{"domainName":"\#(words[0])","key":"\#(words[1])"\#(end)}"#
    }
    try stage.directory.write(#"{"keys":[\#(keys.joined(separator: ","))]}"#, to: "payload.json")
  }

  /// The first list is in `app.json`, and the second in `payload.json`.
  private func make(_ step: Step) async throws -> Format2Stage {
    let stage = try Format2Stage()
    try write(step.before, to: stage)
    try stage.directory.write(step.settings, to: "settings.json")
    try await stage.makeSet()
    let signed = try await stage.run(
      "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json --statement settings.json"
        + " payload.json --out app.json")
    #expect(signed.exitCode == 0, "\(signed.stderr)")
    try write(step.after, to: stage)
    try stage.directory.write(step.next ?? step.settings, to: "settings.json")
    return stage
  }

  @Test("lets go of no pins quietly", arguments: steps)
  func step(step: Step) async throws {
    let stage = try await make(step)
    let line = "\(Self.daily) --statement settings.json"
    let outcome = try await stage.run(line)
    #expect(outcome.exitCode == (step.says == nil ? 0 : 1), "\(outcome.stderr)")
    if let says = step.says { #expect(outcome.stderr.contains(says), "\(outcome.stderr)") }
    #expect(outcome.stderr.contains("keep the last pins") == step.isKept, "\(outcome.stderr)")
    guard step.says != nil else { return }
    let meant = try await stage.run(line + " --allow-loosening")
    #expect(meant.exitCode == (step.isAllowed ? 0 : 1), "\(meant.stderr)")
  }

  @Test("beside a retired statement as well", arguments: [true, false])
  func retired(isRemoved: Bool) async throws {
    let stage = try await make(
      Step(testDescription: "", settings: Self.hosts("**.example", Self.caPin)))
    let removed = isRemoved ? "a.example" : "c.example"
    try stage.directory.write(#"{"removed":["\#(removed)"]}"#, to: "settings.json")
    let retired = try await stage.run(
      "sign --key prv.pem --online-key root0.pem --retired --statement settings.json app.json"
        + " --out app.json")
    #expect(retired.exitCode == 0, "\(retired.stderr)")
    let outcome = try await stage.run("sign --key prv.pem payload.json --out app.json")
    #expect(outcome.exitCode == (isRemoved ? 0 : 1), "\(outcome.stderr)")
    let says = "connections there would no longer need one of its leaf keys; hint: "
    #expect(outcome.stderr.contains(says) != isRemoved, "\(outcome.stderr)")
  }

  @Test("beside a retired statement match all stays as well, and what goes by another key is told")
  func retiredMatch() async throws {
    for (settings, says, code) in [
      (Self.hosts("*.example", Self.anyCA), "have match any by the retired statement: ", 1),
      ("{}", "warning: the payload leaves out a.example, and a wider pattern matches hosts", 0),
    ] as [(String, String, Int32)] {
      let wide = "*.example \(code == 0 ? Self.other : Self.pin)"
      let before = ["a.example \(Self.pin)", wide]
      let stage = try await make(
        Step(testDescription: "", before: before, after: before, settings: settings))
      let retired = try await stage.run(
        "sign --key prv.pem --online-key root0.pem --retired app.json --out app.json")
      #expect(retired.exitCode == 0, "\(retired.stderr)")
      try await stage.must("sign --key prv.pem payload.json --out app.json")
      try write([wide], to: stage)
      let outcome = try await stage.run("sign --key prv.pem payload.json --out app.json")
      #expect(outcome.exitCode == code && outcome.stderr.contains(says), "\(outcome.stderr)")
      guard code == 1 else { continue }
      // The way on that it names.
      try stage.directory.write(#"{"removed":["a.example"]}"#, to: "settings.json")
      let anew = try await stage.run(
        "sign --key prv.pem --online-key root0.pem --retired --statement settings.json app.json"
          + " --out app.json")
      #expect(anew.exitCode == 0, "\(anew.stderr)")
      try await stage.must("sign --key prv.pem payload.json --out app.json")
    }
  }

  @Test(
    "warns where a wider pattern lists some of the keys, and names hosts that no pins are kept for")
  func some() async throws {
    let stage = try await make(
      Step(
        testDescription: "",
        before: ["a.example \(Self.pin)", "a.example \(Self.other)", "*.c.example \(Self.pin)"],
        after: ["*.example \(Self.pin)", "b.c.example \(Self.pin)"]))
    let outcome = try await stage.run("\(Self.daily)")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    for says in [
      "leaves out a.example, and a wider pattern lists only some of its keys: ",
      "clients that saw *.c.example in epoch 1 keep the last pins, except for hosts that match b.c.example, and",
    ] { #expect(outcome.stderr.contains(says), "\(outcome.stderr)") }
  }

  @Test(
    "in format 1 the pins of a host that a wider pattern matches are let go of with a warning",
    arguments: [
      (
        ["a.example \(pin)", "*.example \(other)"], ["*.example \(other)"],
        "leaves out a.example, and"
      ),
      (
        ["a.example \(pin)", "a.example \(other)"], ["*.example \(other)"],
        "leaves out a.example, and a wider pattern lists only some of its keys: "
      ),
      (
        ["a.example \(pin)", "*.example \(other)"], ["*.example \(pin)", "*.example \(other)"], nil
      ),
      (
        ["a.example \(pin)", "*.example \(other)"],
        ["*.example \(other)", "a.example \(other)", "a.example \(pin)"], nil
      ),
      (["a.example \(pin) 1700000000", "*.example \(other)"], ["*.example \(other)"], nil),
      (["a.example \(pin)"], ["*.b.example \(other)"], "clients keep the last pins for 30 days"),
    ] as [([String], [String], String?)])
  func format1(before: [String], after: [String], says: String?) async throws {
    let stage = try Format2Stage()
    let sign = "sign --key prv.pem payload.json --out"
    try write(before, to: stage)
    #expect(try await stage.run("\(sign) f1.json").exitCode == 0)
    try write(after, to: stage)
    // Nothing at hand, nothing to be told.
    try await stage.must("\(sign) other.json")
    let outcome = try await stage.run("\(sign) f1.json")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says ?? "\n") == (says != nil), "\(outcome.stderr)")
    #expect(outcome.stderr.contains("or sign a statement, --online-key") == (says != nil))
    try await stage.must("\(sign) f1.json")
  }

  @Test(
    "tells of a host that stays without the key of a wider pattern that goes, in every format",
    arguments: [
      (["a.example \(other)", "*.example \(pin)"], ["a.example \(other)"], true),
      (["a.example \(pin)", "*.example \(pin)"], ["a.example \(pin)"], false),
      (
        ["a.example \(other)", "*.example \(pin)"],
        ["a.example \(other)", "**.example \(pin)"], false
      ),
      (
        ["*.example \(pin)", "*.example \(other)"], ["a.example \(other)"], true
      ),
    ])
  func narrower(before: [String], after: [String], isTold: Bool) async throws {
    for settings in ["{}", #"{"removed":["*.example"]}"#] {
      let stage = try await make(
        Step(testDescription: "", before: before, after: after, next: settings))
      let outcome = try await stage.run("\(Self.daily) --statement settings.json")
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let says =
        "warning: servers of a.example that show a key which *.example had are refused at once; "
      #expect(outcome.stderr.contains(says) == isTold, "\(outcome.stderr)")
    }
    let says =
      "warning: servers of a.example that show a key which *.example had are refused at once; "
    for retires in [false, true] {
      let plain = try await self.plain(before, after, retires)
      #expect(plain.contains(says) == isTold, "\(plain)")
    }
  }

  @Test("beside a retired statement, too, it warns where a wider pattern lists some of the keys")
  func someRetired() async throws {
    for (after, isTold) in [("*.example \(Self.pin)", true), ("a.example \(Self.pin)", false)] {
      let told = try await plain(
        ["a.example \(Self.pin)", "a.example \(Self.other)"], [after], true)
      #expect(
        told.contains("leaves out a.example, and a wider pattern lists only some of its keys: ")
          == isTold, "\(told)")
    }
  }

  /// What is told where `--key` alone signs: in format 1, or beside a retired statement.
  private func plain(
    _ before: [String], _ after: [String], _ retires: Bool
  ) async throws -> String {
    let stage = try Format2Stage()
    try write(before, to: stage)
    let sign = "sign --key prv.pem payload.json --out app.json"
    if retires {
      try await stage.makeSet()
      try await stage.must(
        "sign --first --key prv.pem --online-key root0.pem --key-sets sets.json payload.json --retired"
          + " --out app.json")
    } else {
      try await stage.must(sign)
    }
    try write(after, to: stage)
    let outcome = try await stage.run(sign)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    return outcome.stderr
  }
}
