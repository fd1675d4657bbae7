import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("A measured store does what its store does, and tells how long it took")
struct MeasuredStoreTests {
  private let metrics = ServerMetrics(version: "1", started: 0)
  private let store: MeasuredStore

  init() {
    let time = Locked(Duration.zero)
    store = MeasuredStore(MemoryStore(), metrics: metrics) {
      time.withLock { time in
        time += .milliseconds(4)
        return time
      }
    }
  }

  private func sample(_ series: String) throws -> Double? {
    try PrometheusPage(metrics.exposition(at: 0)).samples["ssl_pinning_store_\(series)"]
  }

  @Test("values pass through, and every call is timed")
  func values() async throws {
    #expect(try await store.record(named: "a") == nil)
    #expect(
      try await store.replace("a", version: 0, with: [1], history: [[7]]) == .replaced(version: 1))
    #expect(try await store.replace("a", version: 0, with: [2]) == .conflict(version: 1))
    #expect(try await store.record(named: "a") == StoredRecord(version: 1, bytes: [1]))
    #expect(
      try await store.history(of: "a", before: nil, limit: 9)
        == [StoredEntry(number: 1, bytes: [7])])
    let leadership = try await store.lead()
    #expect(leadership != nil)
    #expect(try await store.lead() == nil)
    #expect(try sample("duration_seconds_count{operation=\"record\"}") == 2)
    #expect(try sample("duration_seconds_sum{operation=\"record\"}") == 0.008)
    #expect(try sample("duration_seconds_count{operation=\"replace\"}") == 2)
    #expect(try sample("duration_seconds_count{operation=\"history\"}") == 1)
    #expect(try sample("duration_seconds_count{operation=\"lead\"}") == 2)
    #expect(try sample("errors_total{operation=\"replace\"}") == 0)
  }

  @Test("an error passes through, is timed, and is counted")
  func errors() async throws {
    await store.close()
    await #expect(throws: StoreError.closed) { try await store.record(named: "a") }
    #expect(try sample("errors_total{operation=\"record\"}") == 1)
    #expect(try sample("duration_seconds_count{operation=\"record\"}") == 1)
  }

  @Test("the changes of the store inside end with it")
  func changes() async throws {
    let isOver = Locked(false)
    let listening = Task { [store] in
      for await _ in store.changes() {}
      isOver.withLock { $0 = true }
    }
    _ = try await store.replace("a", version: 0, with: [1])
    #expect(!isOver.withLock { $0 })
    await store.close()
    #expect(await eventually { isOver.withLock { $0 } })
    listening.cancel()
  }
}
