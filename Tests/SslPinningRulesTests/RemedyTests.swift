import SslPinningRules
import Testing

@Suite("What may end a refusal")
struct RemedyTests {
  private static let stamp = RegistryStamp(version: nil, payloadDigest: "", confirmed: 0)
  private static let pin = SPKIPin(computed: [UInt8](repeating: 7, count: 32))

  private static func verdict(
    _ outcome: PinEvaluation.Outcome, _ decision: PinEvaluation.Decision = .refuse,
    isShipped: Bool = false
  ) -> PinEvaluation {
    PinEvaluation(
      host: "a.example", outcome: outcome, decision: decision, registry: isShipped ? nil : stamp)
  }

  @Test(
    "is told for each outcome, and never checks less",
    arguments: [
      (.mismatch(.leaf), [.refresh, .otherNetwork]), (.mismatch(.ca), [.refresh, .otherNetwork]),
      (.unlisted, [.refresh]), (.noLivePin, [.refresh, .clock]), (.denied(pin), [.otherNetwork]),
      (.clientTooOld(["x"]), [.appUpdate, .refresh]),
      (.registryExpired(at: 1), [.refresh, .clock, .appUpdate]),
      (
        .chainRejected(.outOfDate(code: 9, reason: "", mayBeEarly: true)),
        [.clock, .refresh, .otherNetwork]
      ),
      (
        .chainRejected(.outOfDate(code: 10, reason: "", mayBeEarly: false)),
        [.clock, .otherNetwork]
      ),
      (.chainRejected(.wrongHost), [.otherNetwork]),
      (.chainRejected(.untrusted(code: 20, reason: "")), [.otherNetwork]),
      (.unjudged("no handshake"), []), (.clearText(scheme: "http"), []),
      (.uncheckable(.ca), [.refresh]),
    ] as [(PinEvaluation.Outcome, [PinEvaluation.Remedy])])
  func table(outcome: PinEvaluation.Outcome, remedies: [PinEvaluation.Remedy]) {
    let verdict = Self.verdict(outcome)
    #expect(verdict.remedies == remedies)
    #expect(verdict.couldChangeAfterRefresh == remedies.contains(.refresh))
  }

  @Test("is an update where the pins came with the app, and nothing where nothing was refused")
  func shipped() {
    #expect(
      Self.verdict(.mismatch(.leaf), isShipped: true).remedies == [.appUpdate, .otherNetwork])
    #expect(Self.verdict(.unlisted, isShipped: true).remedies == [.appUpdate])
    #expect(
      Self.verdict(
        .chainRejected(.outOfDate(code: 9, reason: "", mayBeEarly: true)), isShipped: true
      ).remedies == [.clock, .otherNetwork])
    #expect(Self.verdict(.mismatch(.leaf), .accept).remedies.isEmpty)
  }
}
