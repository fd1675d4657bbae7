import Foundation
import RegistryServer
import TestSupport
import Testing

@testable import RegistryStores
@testable import ssl_pinning_lab

@Suite("Killed writers")
struct KillTests {
  private static func program() throws -> String { try BuiltProgram.path("ssl-pinning-lab") }

  @Test(
    "leave everything that was acknowledged to them, whole, and nothing older than before",
    arguments: DurableStore.allCases)
  func everyStore(_ kind: DurableStore) async throws {
    let endpointKeys = try await KillDrill.run(kind, times: 25, program: Self.program())
    #expect(endpointKeys.isPassed, "\(endpointKeys.line)")
    #expect(endpointKeys.kills == 25)
  }

  @Test("leave the leadership to another server", arguments: DurableStore.allCases)
  func failover(_ kind: DurableStore) async throws {
    let ground = try await KillGround.prepare(kind)
    let dsn = ground.dsn(kind)
    let leader = try ChildProcess(
      Self.program(), ["store-leader", "--store", kind.rawValue, "--dsn", dsn])
    try await leader.waitForOutput(containing: "leading")
    let store = try kind.open(dsn)
    #expect(try await store.lead() == nil)
    _ = try await leader.terminate(signal: SIGKILL)
    let successor = Task {
      while !Task.isCancelled {
        if let leadership = try await store.lead() { return await leadership.resign() }
        // why: a dead server's lock can only be tried again, as a waiting server does.
        try await Task.sleep(nanoseconds: 200_000_000)
      }
      throw CancellationError()
    }
    // The contract's bound, with a margin for a machine that is busy with other tests.
    let bound = Task {
      // why: the bound is a time.
      try await Task.sleep(nanoseconds: 20_000_000_000)
      successor.cancel()
    }
    await #expect(throws: Never.self) { try await successor.value }
    bound.cancel()
    await store.close()
    try await ground.stop()
  }

  @Test(
    "are judged by what they were told and what is there",
    arguments: [
      // Acknowledged up to 3: 3 is there, or 4, which was under way.
      ([1, 2, 3], 0, 3, true, "1 kills, 3 acknowledged, 0 lost, 0 torn, 0 backwards"),
      ([1, 2, 3], 0, 4, true, "1 kills, 3 acknowledged, 0 lost, 0 torn, 0 backwards"),
      ([1, 2, 3], 0, 2, true, "1 kills, 3 acknowledged, 1 lost, 0 torn, 0 backwards"),
      ([1, 2, 3], 0, 0, true, "1 kills, 3 acknowledged, 1 lost, 0 torn, 0 backwards"),
      ([1, 2, 3], 0, 3, false, "1 kills, 3 acknowledged, 0 lost, 1 torn, 0 backwards"),
      (
        [1, 2, 3], 0, 5, true,
        "1 kills, 3 acknowledged, 0 lost, 0 torn, 0 backwards, 1 unexplained"
      ),
      // Killed before the first was acknowledged, or before it could say what it found.
      ([], 7, 8, true, "1 kills, 0 acknowledged, 0 lost, 0 torn, 0 backwards"),
      ([], 7, 9, true, "1 kills, 0 acknowledged, 0 lost, 0 torn, 0 backwards, 1 unexplained"),
      ([], nil, 1, true, "1 kills, 0 acknowledged, 0 lost, 0 torn, 0 backwards"),
      ([], nil, 2, true, "1 kills, 0 acknowledged, 0 lost, 0 torn, 0 backwards, 1 unexplained"),
    ] as [([Int64], Int64?, Int64, Bool, String)])
  func endpointKeys(
    _ lines: [Int64], _ found: Int64?, _ version: Int64, _ isWhole: Bool, _ line: String
  ) {
    var endpointKeys = KillLedger()
    endpointKeys.enter(
      acknowledged: lines, found: found,
      reopened: KillLedger.Reading(version: version, isWhole: isWhole))
    #expect(endpointKeys.line == line)
    let isHarmless = line.hasSuffix("0 lost, 0 torn, 0 backwards")
    #expect(endpointKeys.isPassed == (isHarmless && !lines.isEmpty))
  }

  @Test("must not take a reader back, neither while they run nor when the store is opened again")
  func backwards() {
    func reading(_ version: Int64) -> KillLedger.Reading { .init(version: version, isWhole: true) }
    var endpointKeys = KillLedger()
    endpointKeys.enter(reading(4))
    endpointKeys.enter(reading(4))
    endpointKeys.enter(acknowledged: [4, 5], found: 3, reopened: reading(5))
    #expect(endpointKeys.isPassed)
    endpointKeys.enter(reading(4))
    #expect(endpointKeys.backwards == 1 && !endpointKeys.isPassed)
    endpointKeys = KillLedger()
    endpointKeys.enter(reading(6))
    endpointKeys.enter(acknowledged: [5], found: 4, reopened: reading(5))
    #expect(endpointKeys.backwards == 1 && !endpointKeys.isPassed)
    #expect(!KillLedger().isPassed)
  }

  @Test("write what can be told from everything else")
  func contents() {
    for version in Int64(1)...40 {
      let bytes = NumberedRecord.bytes(of: version)
      #expect(NumberedRecord.isWhole(StoredRecord(version: version, bytes: bytes)))
      #expect(!NumberedRecord.isWhole(StoredRecord(version: version + 1, bytes: bytes)))
      #expect(!NumberedRecord.isWhole(StoredRecord(version: version, bytes: bytes.dropLast())))
    }
    let all = (1...10 as ClosedRange<Int64>).flatMap { NumberedRecord.history(of: $0) }
      .enumerated().map { StoredEntry(number: Int64($0.offset) + 1, bytes: $0.element) }
    let history = Array(all.reversed())
    #expect(NumberedRecord.isWhole(history, of: 10, limit: 100))
    #expect(NumberedRecord.isWhole(Array(history.prefix(7)), of: 10, limit: 7))
    #expect(NumberedRecord.isWhole([], of: 0, limit: 100))
    #expect(!NumberedRecord.isWhole(history, of: 11, limit: 100))
    #expect(!NumberedRecord.isWhole(history, of: 9, limit: 100))
    #expect(!NumberedRecord.isWhole(Array(history.dropLast()), of: 10, limit: 100))
    #expect(!NumberedRecord.isWhole(Array(history.dropFirst()), of: 10, limit: 100))
    var torn = history
    torn[3] = StoredEntry(number: torn[3].number, bytes: torn[4].bytes)
    #expect(!NumberedRecord.isWhole(torn, of: 10, limit: 100))
  }

  @Test("are started with a store and a place, and with nothing else")
  func arguments() async {
    for arguments in [
      [], ["--store", "sqlite"], ["--dsn", "/tmp/x"], ["--store", "memory", "--dsn", "x"],
      ["--what", "x"],
    ] {
      #expect(await StoreWorker.run("store-writer", arguments) == 2)
    }
    #expect(await KillCommand.run(["--times", "0"]) { _ in } == 2)
    #expect(await KillCommand.run(["--store", "memory"]) { _ in } == 2)
  }
}
