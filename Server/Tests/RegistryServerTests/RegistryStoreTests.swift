import Foundation
import RegistryServer
import RegistryStores
import TestSupport
import Testing

@Suite("Every store keeps the contract") struct RegistryStoreTests {
  @Test("has nothing before the first replacement", arguments: StoreKind.allCases)
  func startsEmpty(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    #expect(try await store.record(named: "a.json") == nil)
  }

  @Test("gives back what was put in, under the next version", arguments: StoreKind.allCases)
  func roundTrip(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    let samples: [[UInt8]] = [[1, 2, 3], [], [0, 255, 0], [UInt8](repeating: 7, count: 1 << 20)]
    for (index, bytes) in samples.enumerated() {
      let version = Int64(index)
      let outcome = try await store.replace("a.json", version: version, with: bytes)
      #expect(outcome == .replaced(version: version + 1))
      let record = try await store.record(named: "a.json")
      #expect(record?.version == version + 1)
      // Compared beside the macro: it would explain a difference of a million bytes one by one.
      let isSame = record?.bytes == bytes
      #expect(isSame, "\(bytes.count) bytes")
    }
  }

  @Test("keeps names apart", arguments: StoreKind.allCases)
  func names(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    _ = try await store.replace("a.json", version: 0, with: [1])
    _ = try await store.replace("A.json", version: 0, with: [2])
    #expect(try await store.record(named: "a.json")?.bytes == [1])
    #expect(try await store.record(named: "A.json")?.bytes == [2])
    _ = try await store.replace(".a.json", version: 0, with: [3])
    #expect(try await store.record(named: "a.json")?.bytes == [1])
    #expect(try await store.record(named: ".a.json")?.bytes == [3])
    #expect(try await store.record(named: "b.json") == nil)
  }

  @Test(
    "refuses a replacement of another version than the one in force, and changes nothing",
    arguments: StoreKind.allCases)
  func compareAndSwap(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    #expect(try await store.replace("a", version: 3, with: [9]) == .conflict(version: 0))
    #expect(try await store.record(named: "a") == nil)
    _ = try await store.replace("a", version: 0, with: [1])
    _ = try await store.replace("a", version: 1, with: [2])
    for stale: Int64 in [0, 1, 3, -1, .max, .min] {
      #expect(try await store.replace("a", version: stale, with: [9]) == .conflict(version: 2))
    }
    #expect(try await store.record(named: "a")?.bytes == [2])
  }

  @Test("lets exactly one of many win each version", arguments: StoreKind.allCases)
  func race(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    for version in Int64(0)..<20 {
      let winners = try await withThrowingTaskGroup(of: UInt8?.self) { group in
        for writer in UInt8(0)..<8 {
          group.addTask {
            while true {
              do {
                let outcome = try await store.replace("a", version: version, with: [writer])
                return outcome == .replaced(version: version + 1) ? writer : nil
              } catch StoreError.busy {
                // Nothing was written: on a machine with much to do the others hold the record for long.
                continue
              }
            }
          }
        }
        return try await group.reduce(into: [UInt8]()) { if let winner = $1 { $0.append(winner) } }
      }
      #expect(winners.count == 1)
      #expect(try await store.record(named: "a")?.bytes == winners)
    }
  }

  @Test("never shows a torn or an older record to a reader", arguments: StoreKind.allCases)
  func readers(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for version in Int64(0)..<100 {
          let bytes = [UInt8](repeating: UInt8(version + 1), count: 20_000)
          _ = try await store.replace("a", version: version, with: bytes)
        }
      }
      for _ in 0..<3 {
        group.addTask {
          var newest: Int64 = 0
          while newest < 100 {
            try Task.checkCancellation()
            guard let record = try await store.record(named: "a") else { continue }
            let isWhole = record.bytes == [UInt8](repeating: UInt8(record.version), count: 20_000)
            #expect(isWhole && record.version >= newest, "version \(record.version)")
            newest = record.version
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test(
    "says of a record that cannot be read that it alone is damaged, and puts another one in its place",
    arguments: StoreKind.shared)
  func damaged(_ kind: StoreKind) async throws {
    let directory = try TemporaryDirectory()
    let damaged = try await DamagedStore(kind)
    let first = try damaged.open(in: directory)
    _ = try await first.replace("a", version: 0, with: [UInt8](repeating: 0xa5, count: 20_000))
    _ = try await first.replace("b", version: 0, with: [1])
    await first.close()
    try await damaged.damage("a", in: directory)
    let store = try damaged.open(in: directory)
    let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
    if case .damaged = error {} else { Issue.record("\(String(describing: error))") }
    #expect(try await store.record(named: "b") == StoredRecord(version: 1, bytes: [1]))
    if DamagedStore.replaceable.contains(kind) {
      // Not by a server, which knows another version.
      await #expect(throws: StoreError.self) { try await store.replace("a", version: 1, with: [2]) }
      let outcome = try await store.replace("a", version: 0, with: [2], history: [[3]])
      #expect(outcome == .replaced(version: 1))
      #expect(try await store.record(named: "a") == StoredRecord(version: 1, bytes: [2]))
      #expect(try await store.history(of: "a", before: nil, limit: 9).map(\.bytes) == [[3]])
    }
    await store.close()
  }

  @Test("answers nothing once it is closed", arguments: StoreKind.allCases)
  func closing(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    await store.close()
    await #expect(throws: StoreError.closed) { try await store.record(named: "a") }
    await #expect(throws: StoreError.closed) { try await store.replace("a", version: 0, with: []) }
    await #expect(throws: StoreError.closed) {
      try await store.history(of: "a", before: nil, limit: 1)
    }
    await #expect(throws: StoreError.closed) { try await store.lead() }
    for await _ in store.changes() { Issue.record("a closed store tells of a change") }
    await store.close()
  }
}
