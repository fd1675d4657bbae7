import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// A store that fails, or acknowledges nothing, when a test says so.
private actor MoodyStore: WholeHistoryStore {
  enum Mood { case well, fails, losesAnswers }

  private let base: any RegistryStore
  private var mood = Mood.well
  private let replaced = Locked(0)
  nonisolated var replacements: Int { replaced.withLock { $0 } }

  init(_ base: any RegistryStore = MemoryStore()) { self.base = base }

  func become(_ mood: Mood) { self.mood = mood }

  func record(named name: String) async throws(StoreError) -> StoredRecord? {
    if mood == .fails { throw .busy }
    return try await base.record(named: name)
  }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    if mood == .fails { throw .busy }
    let outcome = try await base.replace(name, version: version, with: bytes, history: history)
    replaced.withLock { $0 += 1 }
    if mood == .losesAnswers { throw .failed(operation: "replace", reason: "the answer was lost") }
    return outcome
  }

  func history(of name: String, before: Int64?, limit: Int) -> [StoredEntry] { [] }

  nonisolated func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }

  func lead() -> (any StoreLeadership)? { nil }

  func close() {}
}

@Suite("A collector counts reports and keeps the counts in the store")
struct ReportCollectorTests {
  private let store = MoodyStore()
  private let clock = TestClock(ReportFactory.now)
  private let log = LogCollector()
  private let metrics = ServerMetrics(version: "1", started: 0)
  private let listed = Locked(["**.example.com"])

  private func collector(_ writer: String = "one", on store: (any RegistryStore)? = nil) throws
    -> ReportCollector
  {
    ReportCollector(
      store: store ?? self.store,
      listed: { [listed] in
        ListedHosts(listed.withLock { $0 }.compactMap { try? HostPattern($0) })
      }, writer: writer, clock: clock, log: log.log, metrics: metrics)
  }

  private func body(
    _ file: String = "trustkit-ios.json", _ changes: KeyValuePairs<String, JSONValue> = [:]
  ) throws -> [UInt8] {
    var object = try #require(
      try JSONValue(parsing: Vectors.bytes("reports/accepted/" + file)).objectValue)
    for (name, value) in changes { object[name] = value }
    return JSONValue.object(object).canonicalBytes
  }

  /// How many reports a collector tells, of listed hosts and of others.
  private func told(_ collector: ReportCollector) async throws -> [Int64] {
    let now = clock.now()
    let json = await collector.summary().json(since: now - 86_400, until: now + 1, bucket: .hour)
    return [
      try #require(json["reports"]?.integerValue),
      try #require(json["unlisted"]?.objectValue?["reports"]?.integerValue),
    ]
  }

  private func metric(_ outcome: String) throws -> Double? {
    try PrometheusPage(metrics.exposition(at: 0))
      .samples["ssl_pinning_reports_total{outcome=\"\(outcome)\"}"]
  }

  @Test("answers 204, 400 with the reason, 413, and counts each")
  func answers() async throws {
    let collector = try collector()
    #expect(await collector.take(try body()) == .accepted)
    #expect(
      await collector.take(try body("least.json", ["hostname": .string("other.test")])).code == 204)
    let refused = await collector.take(Array("{\"hostname\":\"a\\u0000b\"}".utf8))
    #expect(refused.code == 400)
    let error = try JSONValue(parsing: refused.body).objectValue?["error"]?.stringValue
    #expect(error?.hasPrefix("hostname is no host") == true)
    #expect(await collector.take([UInt8](repeating: 0x20, count: 1 << 20)).code == 413)
    #expect(try await told(collector) == [1, 1])
    #expect(try metric("accepted") == 1)
    #expect(try metric("unlisted") == 1)
    #expect(try metric("refused") == 2)
  }

  @Test("the same report twice is answered twice and counted once")
  func repeats() async throws {
    let collector = try collector()
    for _ in 0..<3 { #expect(await collector.take(try body("ssl-pinning.json")).code == 204) }
    #expect(try await told(collector) == [1, 0])
    #expect(try metric("accepted") == 1)
    #expect(try metric("repeated") == 2)
  }

  @Test("what was written is there after a restart")
  func restart() async throws {
    let first = try collector()
    await first.open()
    for _ in 0..<4 { _ = await first.take(try body()) }
    await first.flush()
    _ = await first.take(try body())
    let second = try collector("two")
    await second.open()
    #expect(try await told(second) == [4, 0])
    #expect(store.replacements == 1)
    await first.flush()
    clock.advance(ReportCollector.freshness)
    #expect(try await told(second) == [5, 0])
  }

  @Test("nothing new is not written")
  func idle() async throws {
    let collector = try collector()
    await collector.open()
    await collector.flush()
    _ = await collector.take(try body("ssl-pinning.json"))
    await collector.flush()
    _ = await collector.take(try body("ssl-pinning.json"))
    await collector.flush()
    #expect(store.replacements == 1)
  }

  @Test("servers on one store add up, whoever writes first", arguments: [1, 2, 5])
  func servers(_ count: Int) async throws {
    let collectors = try (0..<count).map { try collector("\($0)") }
    for collector in collectors { await collector.open() }
    for _ in 0..<10 {
      await withTaskGroup(of: Void.self) { group in
        for collector in collectors {
          group.addTask {
            _ = await collector.take((try? body()) ?? [])
            _ = await collector.take((try? body("rfc7469.json")) ?? [])
            await collector.flush()
          }
        }
      }
    }
    let fresh = try collector("fresh")
    #expect(try await told(fresh) == [Int64(20 * count), 0])
    clock.advance(ReportCollector.freshness)
    for collector in collectors { #expect(try await told(collector) == [Int64(20 * count), 0]) }
  }

  @Test("a store that fails loses nothing: the counts are written when it is well again")
  func failing() async throws {
    await store.become(.fails)
    let collector = try collector()
    await collector.open()
    for _ in 0..<3 {
      _ = await collector.take(try body())
      await collector.flush()
    }
    #expect(try await told(collector) == [3, 0])
    #expect(!log.events("reports_not_read").isEmpty)
    await store.become(.well)
    await collector.flush()
    #expect(try await told(try self.collector("two")) == [3, 0])
  }

  @Test("a write whose acknowledgement was lost is not made twice")
  func lostAnswer() async throws {
    let collector = try collector()
    await collector.open()
    _ = await collector.take(try body())
    await store.become(.losesAnswers)
    await collector.flush()
    #expect(log.events("reports_not_stored").count == 1)
    _ = await collector.take(try body())
    await store.become(.well)
    await collector.flush()
    await collector.flush()
    #expect(try await told(collector) == [2, 0])
    #expect(try await told(try self.collector("two")) == [2, 0])
  }

  @Test("a record of a newer program is left as it is, and reports are counted all the same")
  func newer() async throws {
    let bytes = Array("{\"format\":2}".utf8)
    _ = try await store.replace(ReportCollector.recordName, version: 0, with: bytes)
    let collector = try collector()
    await collector.open()
    _ = await collector.take(try body())
    await collector.flush()
    #expect(try await told(collector) == [1, 0])
    #expect(try await store.record(named: ReportCollector.recordName)?.bytes == bytes)
    #expect(log.events("reports_not_read").count == 1)
    let samples = try PrometheusPage(metrics.exposition(at: 0)).samples
    #expect(samples["ssl_pinning_reports_readable"] == 0)
    #expect(try await store.record(named: ReportCollector.asideName) == nil)
  }

  /// Not an array itself: the library would write each argument down as JSON, all 64 MiB of it.
  struct Broken: Sendable, CustomTestStringConvertible {
    let bytes: [UInt8]

    var testDescription: String { "\(bytes.count) bytes, \(bytes.prefix(16))" }
  }

  @Test(
    "a record that nothing can read is set aside, and collecting goes on",
    arguments: [
      Broken(bytes: Array("{\"format\":1}".utf8)), Broken(bytes: Array("nonsense".utf8)),
      Broken(bytes: []), Broken(bytes: [0xff]),
      Broken(bytes: [UInt8](repeating: 0x20, count: 64 << 20 + 1)),
    ])
  func broken(_ record: Broken) async throws {
    let bytes = record.bytes
    _ = try await store.replace(ReportCollector.recordName, version: 0, with: bytes)
    let collector = try collector()
    await collector.open()
    _ = await collector.take(try body())
    await collector.flush()
    #expect(try await told(collector) == [1, 0])
    #expect(try await told(try self.collector("two")) == [1, 0])
    let aside = try await store.record(named: ReportCollector.asideName)
    #expect(aside?.bytes == bytes)
    #expect(log.events("reports_set_aside").count == 1)
    let samples = try PrometheusPage(metrics.exposition(at: 0)).samples
    #expect(samples["ssl_pinning_reports_set_aside_total"] == 1)
    #expect(samples["ssl_pinning_reports_readable"] == 1)
  }

  @Test("where it cannot be set aside, it stays, and is tried again")
  func notSetAside() async throws {
    let bytes = Array("nonsense".utf8)
    _ = try await store.replace(ReportCollector.recordName, version: 0, with: bytes)
    let collector = try collector()
    await store.become(.losesAnswers)
    _ = await collector.take(try body())
    await collector.flush()
    #expect(try await store.record(named: ReportCollector.recordName)?.bytes == bytes)
    await store.become(.well)
    await collector.flush()
    #expect(try await told(try self.collector("two")) == [1, 0])
    #expect(try await store.record(named: ReportCollector.asideName)?.bytes == bytes)
  }

  @Test("it writes by itself, once for many reports, and again after a failure")
  func running() async throws {
    let collector = try collector()
    await collector.open()
    for _ in 0..<50 { _ = await collector.take(try body()) }
    let task = Task { await collector.run() }
    #expect(await eventually { store.replacements > 0 })
    await store.become(.fails)
    _ = await collector.take(try body())
    #expect(await eventually { !log.events("reports_not_stored").isEmpty })
    task.cancel()
    await task.value
    await store.become(.well)
    await collector.flush()
    #expect(try await told(try self.collector("two")) == [51, 0])
    #expect(store.replacements < 50)
  }

  @Test("the hosts that are listed may change")
  func configured() async throws {
    let collector = try collector()
    listed.withLock { $0 = [] }
    _ = await collector.take(try body())
    _ = await collector.take(try body("least.json", ["hostname": .string("other.test")]))
    #expect(try await told(collector) == [0, 2])
    listed.withLock { $0 = ["www.example.com"] }
    _ = await collector.take(try body())
    // What was kept of the host before is told with the others now, and nothing of it is lost.
    #expect(try await told(collector) == [2, 1])
    listed.withLock { $0 = [] }
    _ = await collector.take(try body())
    #expect(try await told(collector) == [1, 3])
    await collector.flush()
    listed.withLock { $0 = ["www.example.com"] }
    _ = await collector.take(try body())
    await collector.flush()
    listed.withLock { $0 = [] }
    #expect(try await told(try self.collector("two")) == [4, 1])
  }

  @Test("a store on disk keeps them over its end")
  func onDisk() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let first = try SQLiteStore(path: path)
    let collector = try collector(on: first)
    await collector.open()
    _ = await collector.take(try body())
    await collector.flush()
    await first.close()
    let second = try SQLiteStore(path: path)
    #expect(try await told(try self.collector("two", on: second)) == [1, 0])
    await second.close()
  }
}
