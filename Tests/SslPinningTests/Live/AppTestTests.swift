import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TestSupport
import Testing

/// What an app's own tests do, on the actor that they stand on.
@MainActor
@Suite("Tests of an app, on the main actor")
struct AppTestTests {
  /// Something of the test's own, which no other actor may touch.
  private var days: Int64 = 0

  @Test("make a client whose configuration depends on what the main actor has")
  mutating func mainActor() async throws {
    days = 2
    let registry = try ScriptedRegistry(["a.example": [LiveSite.otherPin]])
    let client = try await registry.client(clock: TestClock()) { config in
      config.refreshInterval = Double(days * 86400)
    }
    #expect(client.registryStamp.version?.version == 1)
    // Without a clock of the test's own.
    let other = try await registry.client { $0.enforcement = .reportOnly }
    #expect(other.registryStatus.age == 0)
  }

  @Test("make a refusal by hand, and no acceptance")
  func refusal() throws {
    let pin = try SPKIPin(parsing: LiveSite.otherPin)
    let refusal = PinEvaluation.refused(
      host: "a.example", presented: [pin], expected: [Pin(pin, expires: 1)])
    #expect(refusal.decision == .refuse)
    #expect(refusal.rule == "leaf-pin")
    #expect(refusal.localizedDescription == "refused a.example: the server's key is not pinned")
    for (made, outcome) in [
      (.unlisted, .unlisted), (.noLivePin, .noLivePin), (.denied(pin), .denied(pin)),
      (.chainRejected(.wrongHost), .chainRejected(.wrongHost)),
      (.mismatch(.ca), .mismatch(.ca)), (.uncheckable(.ca), .uncheckable(.ca)),
      (.registryExpired(at: Date(timeIntervalSince1970: 1.5)), .registryExpired(at: 1)),
      (.clearText(scheme: "ws"), .clearText(scheme: "ws")),
      (.unreadableHost(.empty), .unreadableHost(.empty)), (.unjudged("x"), .unjudged("x")),
    ] as [(PinEvaluation.RefusedOutcome, PinEvaluation.Outcome)] {
      let refusal = PinEvaluation.refused(host: "a.example", made)
      #expect(refusal.decision == .refuse && refusal.outcome == outcome)
    }
  }

  @Test("take pins that come out of a file, and times as dates")
  func values() async throws {
    let hosts = ["a.example": [LiveSite.otherPin]]
    let start = Date(timeIntervalSince1970: 1_800_000_000.5)
    let clock = TestClock(now: start)
    let registry = try ScriptedRegistry(hosts, at: clock.now)
    let client = try await registry.client(clock: clock)
    clock.advance(by: 60)
    #expect(clock.now.timeIntervalSince(start) == 59.5)
    let status = client.registryStatus
    #expect(status.age == 60 && status.stamp.confirmationDate == clock.now.addingTimeInterval(-60))
    #expect(status.expires == status.stamp.confirmationDate.addingTimeInterval(90 * 86400))
    try registry.publish(["b.example": [LiveSite.otherPin]] as [String: [String]], at: clock.now)
    #expect(try await client.refresh())
    #expect(client.lists(host: "b.example"))
    let pin = try SPKIPin(parsing: LiveSite.otherPin)
    #expect(Pin(pin, expirationDate: start).expirationDate == start.addingTimeInterval(-0.5))
    #expect(Pin(pin, expirationDate: nil).expirationDate == nil)
    #expect(Date.distantFuture.unixSeconds > Date.distantPast.unixSeconds)
    #expect(Date(timeIntervalSince1970: .infinity).unixSeconds == .max)
    let anchors = [try LiveSite().authority.root.der]
    #expect(TrustMode.anchors(anchors.map { Data($0) }) == .anchors(anchors))
    #expect(try SPKIPin(certificate: Data(anchors[0])) == SPKIPin(certificateDER: anchors[0]))
    #expect(TrustMode.anchors([], andSystem: true) != .system)
  }

  @Test("record the verdicts of a client over fixed pins")
  func fixedPins() async throws {
    let site = try LiveSite()
    let client = try FixedPinsClient(
      pins: FixedPins(["localhost": [site.pin]], trust: .anchors([site.authority.root.der])))
    let verdicts = VerdictRecorder(client)
    let chain = [Data(site.identity.leaf.der)]
    #expect(client.evaluate(presented: chain, host: "localhost").decision == .accept)
    #expect(await verdicts.first { $0.host == "localhost" }?.rule == "matched")
  }

  @Test("waiting for a verdict ends with the task, and with the time")
  func cancelled() async throws {
    let site = try LiveSite()
    let client = try FixedPinsClient(
      pins: FixedPins(["localhost": [site.pin]], trust: .anchors([site.authority.root.der])))
    let verdicts = VerdictRecorder(client)
    let (begun, answer) = (Locked(false), Locked<PinEvaluation??>(nil))
    let waiting = Task {
      begun.withLock { $0 = true }
      let verdict = await verdicts.first(timeout: 3600)
      answer.withLock { $0 = .some(verdict) }
    }
    #expect(await eventually { begun.withLock { $0 } })
    waiting.cancel()
    #expect(await eventually { answer.withLock { $0 } == .some(nil) })
    #expect(await verdicts.first(timeout: 0) == nil)
    // Whoever waits later is not given up with them.
    let next = Task { await verdicts.first { $0.host == "localhost" } }
    _ = client.evaluate(presented: [Data(site.identity.leaf.der)], host: "localhost")
    #expect(await next.value?.rule == "matched")
  }
}
