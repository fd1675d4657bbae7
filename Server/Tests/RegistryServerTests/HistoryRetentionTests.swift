import CanonicalJSON
import RegistryCore
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("What is remembered of a document's changes", .timeLimit(.minutes(2)))
struct HistoryRetentionTests {
  /// Entries 1 to 30, a minute apart; 0 is when the first was made.
  private static func store() async throws -> MemoryStore {
    let store = MemoryStore()
    for version in Int64(0)..<30 {
      let entry = HistoryEntry(time: version * 60, event: "key_staged", who: "ada")
      // One that no program reads.
      let bytes = version == 20 ? [0] : JSONValue.object(entry.json).canonicalBytes
      _ = try await store.replace("a.json", version: version, with: [], history: [bytes])
    }
    return store
  }

  @Test(
    "is the newest ones, by number and by age, and always the last",
    arguments: [
      (0, 0, 1), (10, 0, 21), (30, 0, 1), (31, 0, 1), (1, 0, 30),
      (0, 5 * 60, 25), (0, 60, 29), (0, 3600, 1), (10, 5 * 60, 25), (3, 5 * 60, 28),
      // The one that cannot be read counts as young.
      (0, 9 * 60, 21), (0, 1, 30),
    ] as [(Int, Int64, Int64)])
  func kept(_ entries: Int, _ seconds: Int64, first: Int64) async throws {
    let store = try await Self.store()
    var limits = HistoryConfiguration()
    (limits.entries, limits.age) = (entries, seconds * 1000)
    let retention = HistoryRetention(limits: limits, store: store)
    for _ in 0..<2 {
      try await retention.tidy("a.json", at: 29 * 60)
      let left = try await store.history(of: "a.json", before: nil, limit: 100).map(\.number)
      #expect(left == (first...30).reversed())
    }
    try await retention.tidy("other.json", at: 0)
  }

  @Test("is all, if the newest has a number that no server gives")
  func strangeNumber() {
    #expect(HistoryRetention.surplus(beside: -5, keeping: 10) == 0)
    #expect(HistoryRetention.surplus(beside: 25, keeping: 10) == 15)
  }

  @Test("does not depend on how far such a number is off")
  func strangestNumber() {
    #expect(HistoryRetention.surplus(beside: .min, keeping: .max) == 0)
  }

  /// Lets one interval pass.
  private struct OneInterval: ServerClock {
    let base: TestClock
    let isOver = Locked(false)

    func now() -> Int64 { base.now() }
    func elapsed() -> Int64 { base.elapsed() }
    func uptime() -> Int64 { base.uptime() }
    var isSynchronized: Bool { base.isSynchronized }
    func sleep(milliseconds: Int64) async throws {
      if isOver.withLock({ over in
        defer { over = true }
        return over
      }) {
        throw CancellationError()
      }
    }
  }

  @Test("is put in order by the server that leads, and what was decided stays")
  func service() async throws {
    let server = try ScriptedService(
      storage: "{type: sqlite, dsn: \"DIR/registry.db\"}", more: "history: {keep: 3}")
    server.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await server.start()
    let administered = AdministeredService(scripted: server)
    for key in UInt8(10)...18 {
      try await administered.call(
        "POST", "/denials", #"{"pin": "\#(pin(key).base64)", "why": "x", "force": true}"#)
    }
    let path = "/documents/\(AdministeredService.file)/history"
    let before = try await administered.call("GET", path).json["entries"]?.arrayValue?.count ?? 0
    #expect(before > 8)
    let store = server.service.store
    await DocumentUpkeep(
      coordinators: server.service.duty.coordinators, clock: OneInterval(base: server.clock),
      interval: 60_000,
      retention: HistoryRetention(limits: server.configuration.history, store: store)
    ).run()
    let left = try await store.history(of: AdministeredService.file, before: nil, limit: 100)
    #expect(left.count == 3)
    #expect(try ReplayedStoreTests.denied(server).count == 9)
    await server.service.stop()
  }
}
