import Pinning
import PinningPlatform
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("Where endpoints change, others are looked at before anything is published")
struct SuddenChangeTests {
  private static let count = 6
  private static let file = "all.json"

  private let observer = ScriptedObserver()
  private let clock = SteppedClock()
  private let published = PublishedDocuments(files: [Self.file])
  private let log = LogCollector()
  private let keeper: DocumentKeeper
  private let plan: WatchPlan
  private let health = ServiceHealth()

  init() throws {
    let tls = TLSConfiguration()
    let keys = (0..<Self.count).map {
      "{fqdn: h\($0).test, domainName: h\($0).test, file: all.json}"
    }
    let document = try #require(
      try configuration("keys: [\(keys.joined(separator: ","))]").documents.first)
    keeper = DocumentKeeper(
      KeeperSettings(document, tls: tls),
      services: KeeperServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: MemoryStore(),
        published: published, health: health, log: log.log))
    plan = WatchPlan(keepers: [keeper], observer: observer, tls: tls)
    for index in 0..<Self.count { show(index, UInt8(index)) }
  }

  private func show(_ index: Int, _ key: UInt8) {
    observer.show(.accepted(pin(key)), at: "h\(index).test")
  }

  private var pins: Set<SPKIPin> {
    Set(published.content(Self.file)?.entries.map(\.pin) ?? [])
  }

  /// Watches, changes what endpoints show, and goes on until each was looked at by itself twice; then
  /// again, where there is a second change.
  private func watch(changing: () -> Void, then: (() -> Void)? = nil) async throws {
    let watcher = plan.watcher(clock: clock, health: health)
    watcher.update(endpoints: await plan.targets(of: watcher, clock: clock))
    let task = Task { await watcher.run() }
    try await clock.untilAtRest(watcher)
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    changing()
    // In small steps: whoever goes to sleep just then oversleeps by one of them.
    for _ in 0..<240 { try await clock.advance(milliseconds: 500, watcher) }
    if let then {
      // Until nobody remembers who changed.
      for _ in 0..<70 { try await clock.advance(milliseconds: 10_000, watcher) }
      then()
      for _ in 0..<240 { try await clock.advance(milliseconds: 500, watcher) }
    }
    task.cancel()
    await task.value
  }

  @Test("a change of every one is published by none of them, and is an alert for each")
  func everything() async throws {
    try await watch { for index in 0..<Self.count { show(index, UInt8(100 + index)) } }
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    let state = await keeper.snapshot.state
    #expect(
      state.ledgers.values.map { $0.held.values.map(\.reasons) }
        == Array(repeating: [[.suddenChange]], count: Self.count))
    #expect(
      state.alerts.values.joined().map(\.kind) == Array(repeating: .keyHeld, count: Self.count))
    #expect(log.events("key_held").count >= Self.count)
    #expect(log.events("key_published").count == Self.count)
  }

  @Test("a second change of every one, while the first is held, is held too")
  func twice() async throws {
    try await watch {
      for index in 0..<Self.count { show(index, UInt8(100 + index)) }
    } then: {
      for index in 0..<Self.count { show(index, UInt8(200 + index)) }
    }
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }))
    for ledger in await keeper.snapshot.state.ledgers.values { #expect(ledger.held.count == 2) }
  }

  @Test("a change of a few is published, also where most are looked at later", arguments: 1...3)
  func some(_ changed: Int) async throws {
    try await watch { for index in 0..<changed { show(index, UInt8(100 + index)) } }
    let new = Set((0..<changed).map { pin(UInt8(100 + $0)) })
    #expect(pins == Set((0..<Self.count).map { pin(UInt8($0)) }).union(new))
    #expect(await keeper.snapshot.state.ledgers.values.allSatisfy(\.held.isEmpty))
  }
}
