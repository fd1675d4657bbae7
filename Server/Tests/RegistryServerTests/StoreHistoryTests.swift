import RegistryServer
import RegistryStores
import Testing

@Suite("Every store keeps the history of a record") struct StoreHistoryTests {
  private func entry(_ number: Int64) -> StoredEntry {
    StoredEntry(number: number, bytes: Array("entry \(number)".utf8))
  }

  @Test("appends what comes with a replacement, numbered from 1", arguments: StoreKind.allCases)
  func appending(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    #expect(try await store.history(of: "a", before: nil, limit: 10) == [])
    var number: Int64 = 0
    for version in Int64(0)..<6 {
      // None, one, two and three entries in turn.
      let entries = (0..<version % 4).map { entry(number + $0 + 1).bytes }
      _ = try await store.replace("a", version: version, with: [1], history: entries)
      number += version % 4
      let all = try await store.history(of: "a", before: nil, limit: 100)
      #expect(all == (0..<number).map { entry($0 + 1) }.reversed())
    }
    #expect(number == 7)
    #expect(try await store.history(of: "A", before: nil, limit: 10) == [])
  }

  @Test("hands out the newest before a number, newest first", arguments: StoreKind.allCases)
  func pages(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    // Large enough that a store that moves entries to another place does so half-way.
    let large = [UInt8](repeating: 1, count: 3000)
    for version in Int64(0)..<20 {
      _ = try await store.replace(
        "a", version: version, with: [1], history: [entry(version * 2 + 1).bytes, large])
    }
    let cases: [(before: Int64?, limit: Int, numbers: [Int64])] = [
      (nil, 3, [40, 39, 38]), (41, 1, [40]), (.max, 1, [40]), (40, 2, [39, 38]),
      (2, 5, [1]), (1, 5, []), (0, 5, []), (.min, 5, []), (nil, 0, []), (10, -1, []),
      (13, 12, (1...12).reversed()), (nil, 1000, (1...40).reversed()),
    ]
    for (before, limit, numbers) in cases {
      let found = try await store.history(of: "a", before: before, limit: limit)
      #expect(found.map(\.number) == numbers, "before \(before ?? -1), \(limit)")
      for one in found {
        let isRight = one.bytes == (one.number % 2 == 1 ? entry(one.number).bytes : large)
        #expect(isRight, "number \(one.number)")
      }
    }
  }

  @Test("forgets the oldest, never the newest, and numbers go on", arguments: StoreKind.allCases)
  func forgetting(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    try await store.forgetHistory(of: "a", through: 5)
    // As above: some are in another place than the newest.
    let large = [UInt8](repeating: 1, count: 3000)
    for version in Int64(0)..<20 {
      _ = try await store.replace(
        "a", version: version, with: [1], history: [entry(version * 2 + 1).bytes, large])
    }
    _ = try await store.replace("b", version: 0, with: [1], history: [entry(1).bytes, large])
    let steps: [(through: Int64, left: ClosedRange<Int64>)] = [
      (0, 1...40), (-1, 1...40), (1, 2...40), (13, 14...40), (5, 14...40), (33, 34...40),
      (39, 40...40), (40, 40...40), (.max, 40...40),
    ]
    for (through, left) in steps {
      try await store.forgetHistory(of: "a", through: through)
      for reader in try [store, place.open()] {
        let found = try await reader.history(of: "a", before: nil, limit: 1000)
        #expect(found.map(\.number) == left.reversed(), "through \(through)")
        for one in found {
          let isRight = one.bytes == (one.number % 2 == 1 ? entry(one.number).bytes : large)
          #expect(isRight, "number \(one.number)")
        }
        let page = try await reader.history(of: "a", before: left.lowerBound + 1, limit: 5)
        #expect(page.map(\.number) == [left.lowerBound])
        #expect(try await reader.history(of: "a", before: left.lowerBound, limit: 5) == [])
      }
    }
    for version in Int64(20)..<30 {
      _ = try await store.replace("a", version: version, with: [1], history: [large, large])
    }
    try await store.forgetHistory(of: "a", through: 45)
    let found = try await store.history(of: "a", before: nil, limit: 1000)
    #expect(found.map(\.number) == (46...60).reversed())
    #expect(try await store.history(of: "b", before: nil, limit: 9).map(\.number) == [2, 1])
    #expect(try await store.record(named: "a")?.version == 30)
  }

  @Test("keeps empty and large entries", arguments: StoreKind.allCases)
  func sizes(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    let entries: [[UInt8]] = [[], [0], [UInt8](repeating: 255, count: 65_536), []]
    for version in Int64(0)..<3 {
      _ = try await store.replace("a", version: version, with: [], history: entries)
    }
    let found = try await store.history(of: "a", before: nil, limit: 100)
    let isSame = found.reversed().map(\.bytes) == entries + entries + entries
    #expect(isSame && found.map(\.number) == (1...12).reversed())
  }

  @Test("says nothing of a replacement that was not made", arguments: StoreKind.allCases)
  func conflicts(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    _ = try await store.replace("a", version: 1, with: [9], history: [[9]])
    #expect(try await store.history(of: "a", before: nil, limit: 10) == [])
    _ = try await store.replace("a", version: 0, with: [1], history: [entry(1).bytes])
    _ = try await store.replace("a", version: 0, with: [9], history: [[9]])
    _ = try await store.replace("a", version: 2, with: [9], history: [[9]])
    #expect(try await store.history(of: "a", before: nil, limit: 10) == [entry(1)])
  }

  @Test(
    "has exactly the entries of those who won, in their order, however many write at once",
    arguments: StoreKind.allCases)
  func race(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let stores = [try place.open(), try place.open()]
    let made = try await withThrowingTaskGroup(of: [(Int64, [UInt8])].self) { group in
      for writer in UInt8(0)..<6 {
        group.addTask {
          var (won, version, attempt) = ([(Int64, [UInt8])](), Int64(0), UInt8(0))
          while won.count < 8 {
            attempt &+= 1
            let word = [writer, attempt]
            let outcome = try await stores[Int(writer) % 2].replace(
              "a", version: version, with: word, history: [word, [0] + word])
            switch outcome {
            case .replaced(let new):
              won.append((new, word))
              version = new
            case .conflict(let new): version = new
            }
          }
          return won
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }.sorted { $0.0 < $1.0 }
    }
    #expect(made.map(\.0) == (1...48).map { $0 })
    for store in stores {
      let found = try await store.history(of: "a", before: nil, limit: 1000)
      #expect(found.map(\.number) == (1...96).reversed())
      #expect(found.reversed().map(\.bytes) == made.flatMap { [$0.1, [0] + $0.1] })
      #expect(try await store.record(named: "a")?.bytes == made.last?.1)
    }
  }
}
