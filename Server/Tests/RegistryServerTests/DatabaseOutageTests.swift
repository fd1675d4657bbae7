import RegistryServer
import RegistryStores
import TestSupport
import Testing

@Suite("A database that goes away") struct DatabaseOutageTests {
  @Test(
    "ends calls in an error while it is away, and is used again by the next call",
    arguments: DatabaseKind.allCases)
  func restart(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let store = try server.open()
    // Several connections, all of which the restart cuts.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<8 {
        group.addTask { _ = try await store.replace("r\(index)", version: 0, with: [1]) }
      }
      try await group.waitForAll()
    }
    for round in Int64(1)..<4 {
      if round == 2 { try await server.kill() } else { try await server.stop() }
      for _ in 0..<3 {
        let error = await #expect(throws: StoreError.self) { try await store.record(named: "r0") }
        guard case .unreachable = error else {
          Issue.record("\(String(describing: error))")
          continue
        }
      }
      await #expect(throws: StoreError.self) {
        try await store.replace("r0", version: round, with: [9])
      }
      try await server.launch()
      for index in 0..<8 {
        let outcome = try await store.replace(
          "r\(index)", version: round, with: [2], history: [[UInt8(round)]])
        #expect(outcome == .replaced(version: round + 1))
      }
    }
    #expect(
      try await store.history(of: "r7", before: nil, limit: 9).map(\.bytes) == [[3], [2], [1]])
    await store.close()
  }

  @Test("ends a call in an error while it hangs", arguments: DatabaseKind.allCases)
  func hanging(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let store = try server.open()
    _ = try await store.replace("a", version: 0, with: [1])
    server.suspend(true)
    let error = await #expect(throws: StoreError.self) {
      try await store.replace("a", version: 1, with: [2])
    }
    #expect("\(error, default: "")".contains("no answer in time"))
    // Nor is a new connection waited for.
    await #expect(throws: StoreError.self) { try await store.record(named: "a") }
    server.suspend(false)
    // What was under way may have been done.
    let version = try #require(try await store.record(named: "a")).version
    #expect([1, 2].contains(version))
    let outcome = try await store.replace("a", version: version, with: [3])
    #expect(outcome == .replaced(version: version + 1))
    await store.close()
  }

  @Test(
    "tells of changes again when it is back, and of those that were missed",
    arguments: DatabaseKind.allCases)
  func changes(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let (writer, reader) = (try server.open(), try server.open())
    var told = reader.changes().makeAsyncIterator()
    #expect(await told.next() == "")
    _ = try await writer.replace("a", version: 0, with: [1])
    #expect(await told.next() == "a")
    try await server.kill()
    try await server.launch()
    _ = try await writer.replace("a", version: 1, with: [1])
    #expect(await told.next() == "")
    // It may have been listening again already.
    _ = try await writer.replace("b", version: 0, with: [1])
    let next = await told.next()
    #expect(next == "b" || next == "a")
    await reader.close()
    #expect(await told.next() == nil)
    await writer.close()
  }

  @Test(
    "takes the leadership with it, and has another leader when it is back",
    arguments: DatabaseKind.allCases)
  func leadership(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let (one, other) = (try server.open(), try server.open())
    let first = try #require(try await one.lead())
    #expect(try await other.lead() == nil)
    try await server.kill()
    await first.ended()
    await #expect(throws: StoreError.self) { try await other.lead() }
    try await server.launch()
    let second = try await waitToLead(other)
    #expect(try await one.lead() == nil)
    await second.resign()
    await (try await waitToLead(one)).resign()
    await one.close()
    await other.close()
  }

  @Test(
    "moves the leadership, or leaves it, when it cuts the leader's connection",
    arguments: DatabaseKind.allCases)
  func cutLeader(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let (one, other) = (try server.open(), try server.open())
    let first = try #require(try await one.lead())
    try await server.dropConnections()
    switch kind {
    case .postgres:
      await first.ended()
      await (try await waitToLead(other)).resign()
    case .redis:
      // The key is still there, and renewed over another connection.
      for _ in 0..<7 {
        // why: longer than Redis would keep a key that nobody renews.
        try await Task.sleep(nanoseconds: 1_000_000_000)
        #expect(try await other.lead() == nil)
      }
      await first.resign()
      await (try await waitToLead(other)).resign()
    }
    await one.close()
    await other.close()
  }

  @Test("has no leader that does not know it hangs", arguments: DatabaseKind.allCases)
  func hangingLeader(_ kind: DatabaseKind) async throws {
    let server = try await kind.start()
    let (one, other) = (try server.open(), try server.open())
    let first = try #require(try await one.lead())
    server.suspend(true)
    await first.ended()
    server.suspend(false)
    await (try await waitToLead(other)).resign()
    await one.close()
    await other.close()
  }

  /// Tries to lead as a waiting server does.
  private func waitToLead(_ store: any RegistryStore) async throws -> any StoreLeadership {
    for _ in 0..<600 {
      if let leadership = try await store.lead() { return leadership }
      // why: another server's lock can only be tried again.
      try await Task.sleep(nanoseconds: 100_000_000)
    }
    throw NobodyLeads()
  }

  private struct NobodyLeads: Error {}
}
