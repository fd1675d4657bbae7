import RegistryServer
import RegistryStores
import SslPinningPlatform
import TestSupport
import Testing

@Suite("Every store that several servers share") struct SharedStoreTests {
  @Test("has everything when it is opened again", arguments: StoreKind.shared)
  func restart(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let first = try place.open()
    _ = try await first.replace("a", version: 0, with: [1], history: [[1]])
    _ = try await first.replace("a", version: 1, with: [2], history: [[2], [3]])
    await first.close()
    let second = try place.open()
    #expect(try await second.record(named: "a") == StoredRecord(version: 2, bytes: [2]))
    #expect(
      try await second.history(of: "a", before: nil, limit: 9).map(\.bytes) == [[3], [2], [1]])
  }

  @Test("shows one server at once what another replaced", arguments: StoreKind.shared)
  func twoHandles(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let (one, other) = (try place.open(), try place.open())
    #expect(try await one.replace("a", version: 0, with: [1]) == .replaced(version: 1))
    #expect(try await other.replace("a", version: 0, with: [2]) == .conflict(version: 1))
    #expect(try await other.replace("a", version: 1, with: [3]) == .replaced(version: 2))
    #expect(try await one.record(named: "a")?.bytes == [3])
    #expect(try await one.replace("a", version: 1, with: [4]) == .conflict(version: 2))
  }

  @Test("tells of every change, to everybody who listens", arguments: StoreKind.shared)
  func changes(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let (writer, reader) = (try place.open(), try place.open())
    // Each listener reads again whenever it is told, as a server does, until it has seen the last.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for name in ["a.json", ".b"] {
        let stream = reader.changes()
        group.addTask {
          for await told in stream where told == name || told.isEmpty {
            if try await reader.record(named: name)?.version == 10 { return }
          }
          Issue.record("nobody told of the newest \(name)")
        }
      }
      group.addTask {
        for version in Int64(0)..<10 {
          for name in ["a.json", ".b"] {
            _ = try await writer.replace(name, version: version, with: [1], history: [[1]])
          }
          // Without this the last change could be told by a probe that an earlier one caused.
          if version == 8 { await settled() }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Longer than any store needs to tell of a change.
  private func settled() async {
    // why: that nothing more is told can only be waited for.
    try? await Task.sleep(nanoseconds: 600_000_000)
  }

  @Test("ends the stream of changes when it is closed", arguments: StoreKind.shared)
  func endOfChanges(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let store = try place.open()
    let stream = store.changes()
    let isOver = Locked(false)
    let listening = Task {
      for await _ in stream {}
      isOver.withLock { $0 = true }
    }
    _ = try await store.replace("a", version: 0, with: [1])
    #expect(!isOver.withLock { $0 })
    await store.close()
    #expect(await eventually { isOver.withLock { $0 } })
    listening.cancel()
  }

  @Test("has one leader, and another when that one resigns", arguments: StoreKind.allCases)
  func leadership(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let (one, other) = (try place.open(), try place.open())
    let first = try #require(try await one.lead())
    #expect(try await other.lead() == nil)
    #expect(try await one.lead() == nil)
    await first.resign()
    await first.ended()
    let second = try #require(try await other.lead())
    #expect(try await one.lead() == nil)
    // Resigning once more must not take it from its new holder.
    await first.resign()
    #expect(try await one.lead() == nil)
    await second.resign()
    #expect(try await one.lead() != nil)
  }

  @Test("is led by exactly one of many who try at once", arguments: StoreKind.allCases)
  func leadershipRace(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let stores = try (0..<4).map { _ in try place.open() }
    for _ in 0..<5 {
      let leaders = try await withThrowingTaskGroup(of: (any StoreLeadership)?.self) { group in
        for store in stores {
          for _ in 0..<2 { group.addTask { try await store.lead() } }
        }
        return try await group.reduce(into: [any StoreLeadership]()) {
          if let leader = $1 { $0.append(leader) }
        }
      }
      #expect(leaders.count == 1)
      for leader in leaders { await leader.resign() }
    }
  }

  @Test("gives the leadership up when it is closed", arguments: StoreKind.shared)
  func closingLeader(_ kind: StoreKind) async throws {
    let place = try await kind.place()
    let (one, other) = (try place.open(), try place.open())
    let leadership = try #require(try await one.lead())
    let watching = Task { await leadership.ended() }
    await one.close()
    await watching.value
    #expect(try await other.lead() != nil)
  }

  @Test("lets a task go that waits for the end of a leadership, when it is cancelled")
  func cancelling() async throws {
    let leadership = try #require(try await MemoryStore().lead())
    let waiting = Task { await leadership.ended() }
    waiting.cancel()
    await waiting.value
  }
}
