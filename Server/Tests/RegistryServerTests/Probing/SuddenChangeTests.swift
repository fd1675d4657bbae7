import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("Where endpoints change, others are probed before anything is published")
struct SuddenChangeTests {
  private static let count = 6
  private static let file = "all.json"

  private let observer = ScriptedObserver()
  private let clock = SteppedClock()
  private static let files = [file] + (0..<count).map { "h\($0).test.json" }
  private let published = PublishedDocuments(files: Self.files)
  private let log = LogCollector()
  private let health = ServiceHealth()

  private func plan(_ massChange: MassChangeMode, _ areApart: Bool) throws -> MonitoringPlan {
    let tls = TLSConfiguration(massChange: massChange)
    let file = areApart ? "" : ", file: \(Self.file)"
    let keys = (0..<Self.count).map {
      "{fqdn: h\($0).test, domainName: h\($0).test\(file)}"
    }
    let documents = try configuration("keys: [\(keys.joined(separator: ","))]").documents
    try #require(documents.count == (areApart ? Self.count : 1))
    let services = CoordinatorServices(
      signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: MemoryStore(),
      published: published, health: health, log: log.log)
    for index in 0..<Self.count { show(index, UInt8(index)) }
    return MonitoringPlan(
      coordinators: documents.map {
        DocumentCoordinator(CoordinatorSettings($0, tls: tls), services: services)
      }, observer: observer, tls: tls)
  }

  private func show(_ index: Int, _ key: UInt8) {
    observer.show(.accepted(pin(key)), at: "h\(index).test")
  }

  private var pins: Set<SPKIPin> {
    Set(Self.files.flatMap { published.content($0)?.entries.map(\.pin) ?? [] })
  }

  /// Watches, changes what endpoints show, and goes on until each was probed by itself twice; then
  /// again, where there is a second change.
  private func watch(
    _ massChange: MassChangeMode, changing: () -> Void, then: (() -> Void)? = nil
  ) async throws -> DocumentState {
    try #require(try await watch(massChange, areApart: false, changing, then: then).first).state
  }

  /// - Parameter areApart: whether each endpoint has a document of its own.
  private func watch(
    _ massChange: MassChangeMode, areApart: Bool, _ changing: () -> Void,
    then: (() -> Void)? = nil
  ) async throws -> [DocumentSnapshot] {
    let plan = try plan(massChange, areApart)
    for coordinator in plan.coordinators { try await coordinator.open() }
    let monitor = plan.monitor(clock: clock, health: health)
    monitor.update(endpoints: await plan.targets(of: monitor, clock: clock))
    let task = Task { await monitor.run() }
    try await clock.untilAtRest(monitor)
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    changing()
    // In small steps: whoever goes to sleep just then oversleeps by one of them.
    for _ in 0..<240 { try await clock.advance(milliseconds: 500, monitor) }
    if let then {
      // Until nobody remembers who changed.
      for _ in 0..<70 { try await clock.advance(milliseconds: 10_000, monitor) }
      then()
      for _ in 0..<240 { try await clock.advance(milliseconds: 500, monitor) }
    }
    task.cancel()
    await task.value
    var snapshots: [DocumentSnapshot] = []
    for coordinator in plan.coordinators { snapshots.append(await coordinator.snapshot) }
    return snapshots
  }

  @Test("a change of every one is published, and is one alert that lists them")
  func everything() async throws {
    let state = try await watch(.alert) {
      for index in 0..<Self.count { show(index, UInt8(100 + index)) }
    }
    let all = (0..<Self.count).flatMap { [pin(UInt8($0)), pin(UInt8(100 + $0))] }
    #expect(pins == Set(all))
    let alerts = state.alerts.values.joined()
    #expect(alerts.map(\.kind) == [.massChange])
    for index in 0..<Self.count {
      #expect(alerts.first?.message.contains("h\(index).test:443") == true)
    }
    #expect(log.events("key_published").count == 2 * Self.count)
  }

  @Test("a change of every one is one alert, also if each has a document of its own")
  func apart() async throws {
    let documents = try await watch(.alert, areApart: true) {
      for index in 0..<Self.count { show(index, UInt8(100 + index)) }
    }
    let now = clock.now()
    let overview = ServerOverview(
      documents: documents, version: "1",
      clock: ClockStanding(time: now, wall: now, isSynchronized: true, isConfirmed: true),
      isLeader: true, readiness: (true, [])
    ).json(limit: 100)
    #expect(overview["alertsTotal"] == 1)
    let alert = try #require(overview["alerts"]?.arrayValue?.first?.objectValue)
    #expect(alert["kind"] == "mass-change" && alert["file"] == "")
    let told = documents.flatMap(\.alertConditions).withOneMassChange
    #expect(told.map(\.message) == [alert["message"]?.stringValue])
    for index in 0..<Self.count {
      let key = "h\(index).test:443 \(pin(UInt8(100 + index)).base64)"
      #expect(told.first?.message.contains(key) == true)
    }
    // Each document goes on telling of its own.
    for document in documents {
      #expect(document.state.alerts.values.joined().map(\.kind) == [.massChange])
    }
  }

  @Test("it is one in the metrics and for a webhook, too")
  func told() async throws {
    let receiver = try Receiver()
    let server = try ScriptedService(
      keys: "[{fqdn: h0.test}, {fqdn: h1.test}, {fqdn: h2.test}]",
      more: "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}")
    for index in 0..<3 as Range<UInt8> {
      server.observer.show(.accepted(pin(index)), at: "h\(index).test")
    }
    try await server.start()
    for index in 0..<3 as Range<UInt8> {
      server.observer.show(.accepted(pin(100 + index)), at: "h\(index).test")
      await server.service.probe("h\(index).test")
    }
    @Sendable func lists(_ message: String) -> Bool {
      (0..<3 as Range<UInt8>).allSatisfy { message.contains(pin(100 + $0).base64) }
    }
    #expect(
      await eventually {
        receiver.changes.contains {
          $0.text == "begun mass-change" && lists($0.json["message"]?.stringValue ?? "")
        }
      })
    let page = try PrometheusPage(try await server.get("/metrics").body)
    #expect(page.samples["ssl_pinning_alerts{kind=\"mass-change\"}"] == 1)
    #expect((page.samples["ssl_pinning_alerts{kind=\"unannounced-key\"}"] ?? 0) == 0)
    await server.service.stop()
    await receiver.stop()
  }

  @Test("a change of every one is published by none of them, and is an alert for each, if so asked")
  func held() async throws {
    let state = try await watch(.hold) {
      for index in 0..<Self.count { show(index, UInt8(100 + index)) }
    }
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    #expect(
      state.keysByEndpoint.values.map { $0.held.values.map(\.reasons) }
        == Array(repeating: [[.massChange]], count: Self.count))
    let kinds = state.alerts.values.joined().map(\.kind)
    #expect(kinds.count { $0 == .keyHeld } == Self.count)
    #expect(kinds.count { $0 == .massChange } == 1)
    #expect(log.events("key_held").count >= Self.count)
    #expect(log.events("key_published").count == Self.count)
  }

  @Test("a second change of every one, while the first is held, is held too")
  func twice() async throws {
    let state = try await watch(.hold) {
      for index in 0..<Self.count { show(index, UInt8(100 + index)) }
    } then: {
      for index in 0..<Self.count { show(index, UInt8(200 + index)) }
    }
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    for endpointKeys in state.keysByEndpoint.values { #expect(endpointKeys.held.count == 2) }
  }

  @Test("a change of a few is published, also where most are probed later", arguments: 1...3)
  func some(_ changed: Int) async throws {
    let state = try await watch(.hold) {
      for index in 0..<changed { show(index, UInt8(100 + index)) }
    }
    let new = Set((0..<changed).map { pin(UInt8(100 + $0)) })
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }).union(new))
    #expect(state.keysByEndpoint.values.allSatisfy { $0.held.isEmpty })
    #expect(
      state.alerts.values.joined().map(\.kind)
        == Array(repeating: .unannouncedKey, count: changed))
  }
}
