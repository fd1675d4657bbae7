import RegistryCore
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer

@Suite("A server that leads and loses the leadership")
struct ReplicationTests {
  private let store = TroubledStore()
  private let observer = ScriptedObserver()
  private let log = LogCollector()
  private let gate = Gate()
  private let takenOver = Locked(0)
  private let health = ServiceHealth()
  private let clock = TestClock()
  private let file: String
  private let duty: Replication

  init() throws {
    let tls = TLSConfiguration(confirmations: 1)
    let document = try #require(try configuration("keys: [{fqdn: a.example}]").documents.first)
    file = document.file
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: tls),
      services: CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: PublishedDocuments(files: [document.file]), health: health, log: log.log))
    duty = Replication(
      MonitoringPlan(coordinators: [coordinator], observer: observer, tls: tls), store: store,
      clock: clock, health: health, log: log.log,
      metrics: ServerMetrics(version: "test", started: 0),
      whenTakingOver: { [takenOver] in takenOver.withLock { $0 += 1 } })
    observer.show(.accepted(pin(1)), at: "a.example")
  }

  @Test("says so at once, while the store keeps what it found out waiting")
  func whileItWrites() async throws {
    await store.hold(at: gate)
    let leading = Task { await duty.lead() }
    #expect(await eventually { gate.count == 1 })
    #expect(duty.isLeading && log.events("leading").count == 1)
    try await loseLeadership()
    // The write is still held up: nothing but the leadership ended.
    #expect(try await store.record(named: file) == nil)
    await end(leading)
  }

  @Test("says so at once, while the store keeps it from reading what the one before left")
  func whileItReads() async throws {
    await store.hold(readsAt: gate)
    let leading = Task { await duty.lead() }
    #expect(await eventually { gate.count == 1 })
    #expect(duty.isLeading)
    try await loseLeadership()
    await end(leading)
    // It came to no probe.
    #expect(observer.probes(at: "a.example") == 0)
  }

  @Test(
    "gives it back if it is asked to, also while a write hangs, and not if it did not lead then")
  func givesBack() async throws {
    duty.giveBack()
    await store.hold(at: gate)
    let leading = Task { await duty.lead() }
    #expect(await eventually { gate.count == 1 })
    #expect(duty.isLeading)
    duty.giveBack()
    #expect(await eventually { !log.events("not_leading").isEmpty })
    #expect(await eventually { store.resigned.withLock { $0 } == 1 })
    #expect(!duty.isLeading)
    await end(leading)
  }

  @Test(
    "says that nobody leads if it gave that back and comes to no other attempt, and not while it leads"
  )
  func stuckAfterGivingBack() async throws {
    await store.hold(at: gate)
    let leading = Task { await duty.lead() }
    #expect(await eventually { gate.count == 1 })
    clock.advance(86_400)
    #expect(health.leaderAbsence == nil)
    duty.giveBack()
    #expect(await eventually { !log.events("not_leading").isEmpty })
    #expect(health.leaderAbsence == nil)
    clock.advance(LeaderSight.patience)
    #expect(
      health.leaderAbsence?.message.hasSuffix("no attempt to lead came to an end since") == true)
    await end(leading)
  }

  @Test(
    "looks at what people decided meanwhile where another one led, and only there",
    arguments: [true, false])
  func takesOver(isAfterAnother: Bool) async throws {
    if isAfterAnother { _ = await store.lead() }
    let leading = Task { await duty.lead() }
    if isAfterAnother {
      #expect(await eventually { store.attempts.withLock { $0 } >= 3 })
      #expect(!duty.isLeading)
      await store.freeLeadership()
    }
    #expect(await eventually { observer.probes(at: "a.example") > 0 })
    #expect(takenOver.withLock { $0 } == (isAfterAnother ? 1 : 0))
    leading.cancel()
    await leading.value
  }

  private func loseLeadership() async throws {
    await store.endLeadership()
    #expect(await eventually { !log.events("not_leading").isEmpty })
    #expect(!duty.isLeading)
  }

  private func end(_ leading: Task<Void, Never>) async {
    gate.open()
    leading.cancel()
    await leading.value
    #expect(log.events("leading").count == 1 && log.events("not_leading").count == 1)
  }
}
