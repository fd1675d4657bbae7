import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Lists that older tools signed daily, and that work.
@Suite("sign and pins that let nobody in before either")
struct SignDeadPinTests {
  private static let pin = Format2Stage.pin
  private static let other = Format2Stage.otherPin
  private static let last = "the last pin of its own of a.example is over since "
  private static let left =
    "the payload leaves out a.example, and a wider pattern matches hosts of it"

  /// A list that clients have for three days, and the next one.
  struct Step: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Entries as `pattern key`, with the days since when they are over.
    var before = ["a.example \(pin) 23", "*.example \(other)"]
    let after: [String]
    var denied: [String] = []
    /// What is told; `nil` where nothing is.
    var says: String?
    var isSigned = true
  }

  static let steps = [
    Step(
      testDescription: "over since long, beside another key",
      after: ["a.example \(pin) 23", "*.example \(other)"], says: "warning: \(last)"),
    Step(testDescription: "the same, left out", after: ["*.example \(other)"]),
    Step(
      testDescription: "over since long, and no other key left",
      after: ["a.example \(pin) 23", "b.other \(other)"], says: last, isSigned: false),
    Step(
      testDescription: "over since the last statement",
      before: ["a.example \(pin) 1", "*.example \(other)"],
      after: ["a.example \(pin) 1", "*.example \(other)"], says: last, isSigned: false),
    Step(
      testDescription: "the same, with the key that its servers show now",
      before: ["a.example \(pin) 1", "*.example \(other)"],
      after: ["a.example \(pin) 1", "a.example \(other)", "*.example \(other)"],
      says: "warning: a pin of a.example is over since "),
    Step(
      testDescription: "the same, left out", before: ["a.example \(pin) 1", "*.example \(other)"],
      after: ["*.example \(other)"], says: left, isSigned: false),
    Step(
      testDescription: "over since long, and a wider pattern lets go of its key",
      before: ["a.example \(pin) 23", "*.example \(pin)"],
      after: ["a.example \(pin) 23", "*.example \(other)"], says: last, isSigned: false),
    Step(
      testDescription: "the same, left out", before: ["a.example \(pin) 23", "*.example \(pin)"],
      after: ["*.example \(other)"], says: left, isSigned: false),
    Step(
      testDescription: "denied, left out", before: ["a.example \(pin)", "*.example \(other)"],
      after: ["*.example \(other)"], denied: [pin]),
    Step(
      testDescription: "one that lives, left out beside the one that is over",
      before: ["a.example \(other) 23", "a.example \(pin)", "b.other \(pin)"],
      after: ["*.example \(other)"], says: left, isSigned: false),
  ]

  @Test("goes on where nothing gets worse, and only there", arguments: steps)
  func step(step: Step) async throws {
    let now = Int64(Date().timeIntervalSince1970)
    func entries(_ texts: [String]) throws -> [RegistryKey] {
      try texts.map { text in
        let words = text.split(separator: " ").map(String.init)
        return RegistryKey(
          pattern: try HostPattern(words[0]), pin: .success(try SPKIPin(base64: words[1])),
          expires: words.count > 2 ? now - (Int64(words[2]) ?? 0) * Format2Stage.day : nil)
      }
    }
    func document(_ texts: [String]) throws -> [UInt8] {
      let key = try Keys.signing.get()
      return try RegistryDocument(
        registry: "app.json", keys: try entries(texts),
        terms: .init(
          number: .init(epoch: 0, version: 1), issued: now - 3 * Format2Stage.day,
          expires: now + 87 * Format2Stage.day, denied: try step.denied.map(SPKIPin.init(base64:)))
      ).bytes(format1Key: key, onlineKeys: [key.trustKey])
    }
    let stage = try Format2Stage()
    try stage.directory.write(document(step.before), to: "app.json")
    try stage.directory.write(document(step.after), to: "next.json")
    let payload = try #require(try stage.json("next.json")["payload"])
    try stage.directory.write(payload.canonicalBytes, to: "payload.json")
    let outcome = try await stage.run(
      "sign --key prv.pem --online-key prv.pem payload.json --out app.json")
    #expect(outcome.exitCode == (step.isSigned ? 0 : 1), "\(outcome.stderr)")
    #expect(outcome.stderr.isEmpty == (step.says == nil), "\(outcome.stderr)")
    if let says = step.says { #expect(outcome.stderr.contains(says), "\(outcome.stderr)") }
  }
}
