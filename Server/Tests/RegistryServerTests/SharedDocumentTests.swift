import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("A document that two servers keep")
struct SharedDocumentTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "www.example.com.json"

  /// What one of the servers has.
  private struct Server {
    let published = PublishedDocuments(files: [SharedDocumentTests.file])
    let coordinator: DocumentCoordinator

    init(_ store: TroubledStore, _ document: DocumentConfiguration, probes: Int = 1) throws {
      coordinator = DocumentCoordinator(
        CoordinatorSettings(document, tls: TLSConfiguration(confirmations: probes)),
        services: CoordinatorServices(
          signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
          published: published, health: ServiceHealth(), log: .silent))
    }

    var bytes: [UInt8]? { published.document(SharedDocumentTests.file)?.bytes }
    var pins: [SPKIPin]? { published.content(SharedDocumentTests.file)?.entries.map(\.pin) }
  }

  private let store = TroubledStore()
  private let (one, other): (Server, Server)
  /// Publishes a new key with its second probe.
  private let careful: Server
  private let endpoint: WatchedEndpoint
  private let document: DocumentConfiguration

  init() async throws {
    document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    endpoint = try #require(document.endpoints.first)
    (one, other) = (try Server(store, document), try Server(store, document))
    careful = try Server(store, document, probes: 2)
    try await one.coordinator.open()
    try await other.coordinator.open()
    _ = await one.coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    try #require(await history() == ["key_published 1"])
    try await careful.coordinator.open()
  }

  /// The history, oldest first: events and the first bytes of their pins.
  private func history() async -> [String] {
    await store.history(of: Self.file, before: nil, limit: .max).reversed().compactMap { stored in
      guard let json = try? JSONValue(parsing: stored.bytes), let entry = HistoryEntry(json)
      else { return nil }
      return "\(entry.event) \(entry.pin?.bytes.first ?? 0)"
    }
  }

  @Test("has each entry once where the answer to its write was lost")
  func answerLost() async throws {
    let before = one.published.document(Self.file)?.bytes
    await store.get(into: .answersLost)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    #expect(one.published.document(Self.file)?.bytes == before)
    await store.get(into: .none)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 120)
    #expect(one.pins == [pin(1), pin(2)])
    #expect(await history() == ["key_published 1", "key_published 2"])
    // What comes later is told.
    _ = await one.coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 180)
    #expect(
      await history() == ["key_published 1", "key_published 2", "key_published 3"])
  }

  @Test("has the first sight of a key once where the answer to its write was lost")
  func sightUnanswered() async throws {
    await store.get(into: .answersLost)
    _ = await careful.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await store.get(into: .none)
    _ = await careful.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 120)
    #expect(await history() == ["key_published 1", "key_waiting 2", "key_published 2"])
  }

  @Test("has the first sight of a key once where it is read again while that is being written")
  func readMeanwhile() async throws {
    let (reads, answers) = (Gate(), Gate())
    await store.hold(readsAt: reads)
    let reading = Task { await careful.coordinator.refresh(at: Self.now) }
    #expect(await eventually { reads.count == 1 })
    await store.hold(readsAt: nil)
    await store.get(into: .answersLost)
    await store.hold(answersAt: answers)
    let writing = Task {
      await careful.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    }
    #expect(await eventually { answers.count == 1 })
    // It reads what is being written, before the write fails.
    reads.open()
    await reading.value
    answers.open()
    _ = await writing.value
    await store.get(into: .none)
    _ = await careful.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 120)
    #expect(await history() == ["key_published 1", "key_waiting 2", "key_published 2"])
    #expect(careful.pins == [pin(1), pin(2)])
  }

  @Test("keeps what the other server wrote where it is read while a change is put into words")
  func readWhileEncoding() async throws {
    let reads = Gate()
    await store.hold(readsAt: reads)
    let reading = Task { await one.coordinator.refresh(at: Self.now) }
    #expect(await eventually { reads.count == 1 })
    await store.hold(readsAt: nil)
    try await stage(pin(2), with: other)
    // So much to put into words that what the other wrote is read long before that is done.
    let (calls, id) = (Locked(0), endpoint.id)
    let change = Task {
      try await one.coordinator.perform(at: Self.now + 120) {
        state, _ throws(AdministrationError) in
        let request = DocumentState.Request(who: "ada", at: Self.now + 120, why: "")
        calls.withLock { $0 += 1 }
        return try state.stage(pin(3), at: id, request)
          + (1...20_000).map { HistoryEntry(time: $0, event: "noted", who: "ada") }
      }
    }
    #expect(await eventually { calls.withLock { $0 } > 0 })
    reads.open()
    await reading.value
    _ = try await change.value
    #expect(Set(one.pins ?? []) == [pin(1), pin(2), pin(3)])
    await other.coordinator.refresh(at: Self.now)
    #expect(Set(other.pins ?? []) == [pin(1), pin(2), pin(3)])
  }

  /// What an administrator does at one of the servers.
  private func stage(_ key: SPKIPin, with server: Server) async throws {
    let request = DocumentState.Request(who: "ada", at: Self.now + 90, why: "")
    let id = endpoint.id
    _ = try await server.coordinator.perform(at: request.at) {
      state, _ throws(AdministrationError) in try state.stage(key, at: id, request)
    }
  }

  @Test(
    "has every denial that one of them knows, also if the one that leads began with an older record"
  )
  func followerKnowsMore() async throws {
    let older = try #require(try await store.record(named: Self.file))
    let now = Self.now + 100
    try await one.coordinator.perform(at: now) { state, configured throws(AdministrationError) in
      try state.deny(
        pin(9), configured: configured, force: true, .init(who: "ada", at: now, why: "stolen"))
    }
    // The store loses that, and who leads is a server that has just started.
    // The newer one first: beside a record that counts a loss, none of before looks newer.
    for isNewer in [true, false] {
      await store.lose(to: older, named: Self.file)
      let leader = try Server(store, document)
      try await leader.coordinator.open()
      #expect(await leader.coordinator.state.deniedPins.isEmpty)
      if isNewer {
        // It has written so much by now that its record looks newer.
        for key in UInt8(2)...6 {
          let time = now + Int64(key)
          _ = await leader.coordinator.enter(.accepted(pin(key)), of: endpoint, at: time)
        }
      }
      await one.coordinator.refresh(at: now + 60, isFollowing: true)
      await leader.coordinator.refresh(at: now + 60)
      #expect(await leader.coordinator.state.deniedPins == [pin(9)])
      let stored = try #require(try await store.record(named: Self.file))
      #expect(try DocumentState(decoding: stored.bytes, file: Self.file).deniedPins == [pin(9)])
    }
  }

  @Test(
    "keeps the first key of an endpoint that had none when the other server wrote something else")
  func firstKeyBesideAnotherChange() async throws {
    let entries = ["www", "api"].map {
      "{fqdn: \($0).example.com, domainName: \($0).example.com, file: \(Self.file)}"
    }
    let document = try #require(
      try configuration("keys: [\(entries.joined(separator: ","))]").documents.first)
    let api = document.endpoints[1]
    let watching = try Server(store, document)
    try await watching.coordinator.open()
    _ = await watching.coordinator.enter(
      .unreachable(reason: "timed out"), of: api, at: Self.now + 30)
    _ = await watching.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    let asked = try Server(store, document)
    try await asked.coordinator.open()
    try await stage(pin(3), with: asked)
    _ = await watching.coordinator.enter(.accepted(pin(4)), of: api, at: Self.now + 120)
    #expect(watching.pins?.contains(pin(4)) == true)
    _ = await watching.coordinator.enter(.accepted(pin(4)), of: api, at: Self.now + 180)
    #expect(
      await history()
        == ["key_published 1", "key_published 2", "key_staged 3", "key_published 4"])
  }

  @Test("is written again where the store lost what it had acknowledged", arguments: [1, 0])
  func storeWentBack(_ version: Int64) async throws {
    let first = try await store.record(named: Self.file)
    let older = version == 0 ? nil : first
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    try await deny(pin(99), with: one)
    await other.coordinator.refresh(at: Self.now, isFollowing: true)
    await store.lose(to: older, named: Self.file)
    // Whichever of them notices first.
    await other.coordinator.refresh(at: Self.now, isFollowing: true)
    await one.coordinator.refresh(at: Self.now)
    await other.coordinator.refresh(at: Self.now, isFollowing: true)
    #expect(other.bytes == one.bytes)
    _ = await one.coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 180)
    await other.coordinator.refresh(at: Self.now, isFollowing: true)
    #expect(one.pins == [pin(1), pin(2), pin(3)])
    for server in [one, other] {
      let state = await server.coordinator.snapshot.state
      #expect(state.deniedPins == [pin(99)])
      // Of its new keys alone.
      let kinds = Set(state.alerts.values.joined().map(\.kind))
      #expect(kinds == [.unannouncedKey])
    }
    let stored = try #require(await store.record(named: Self.file))
    let record = try DocumentState(decoding: stored.bytes, file: Self.file)
    #expect(record.document == one.bytes)
    #expect(other.bytes == one.bytes)
  }

  @Test("is not taken from a newer record that has an older one")
  func olderDocument() async throws {
    let first = try #require(try await store.record(named: Self.file))
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await other.coordinator.refresh(at: Self.now + 60, isFollowing: true)
    #expect(other.pins == [pin(1), pin(2)])
    let newest = try #require(try await store.record(named: Self.file))
    await store.lose(
      to: StoredRecord(version: newest.version + 1, bytes: first.bytes), named: Self.file)
    await other.coordinator.refresh(at: Self.now + 120, isFollowing: true)
    #expect(other.pins == [pin(1), pin(2)] && other.bytes == one.bytes)
  }

  @Test("has what a server could not write from the one that leads now, not from there")
  func unwritten() async throws {
    await store.fail(true)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await store.fail(false)
    // The store answers again: that is over, whoever leads.
    await one.coordinator.refresh(at: Self.now + 61, isFollowing: true)
    let alerts = await one.coordinator.snapshot.state.alerts.values.joined()
    #expect(!alerts.contains { $0.kind == .storing })
    _ = await other.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 90)
    let id = endpoint.id
    _ = try await other.coordinator.perform(at: Self.now + 100) {
      state, configured throws(AdministrationError) in
      try state.revoke(
        pin(2), at: id, configured: configured, force: true,
        DocumentState.Request(who: "ada", at: Self.now + 100, why: "stolen"))
    }
    await one.coordinator.refresh(at: Self.now + 101, isFollowing: true)
    try await stage(pin(3), with: one)
    #expect(Set(one.pins ?? []) == [pin(1), pin(3)])
    #expect(
      await history()
        == ["key_published 1", "key_published 2", "key_revoked 2", "key_staged 3"])
  }

  @Test("is followed where it changes twice in a second")
  func twiceInASecond() async throws {
    for number in UInt8(2)...4 {
      _ = await one.coordinator.enter(.accepted(pin(number)), of: endpoint, at: Self.now)
      await other.coordinator.refresh(at: Self.now, isFollowing: true)
      #expect(other.pins == one.pins)
      #expect(one.pins?.contains(pin(number)) == true)
    }
  }

  @Test("tells of a denied key when it is shown first, and anew once it was gone")
  func deniedKeyShown() async throws {
    try await deny(pin(9), with: one)
    var time = Self.now + 100
    for key in [pin(9), pin(9), pin(9), pin(1), pin(9)] {
      _ = await one.coordinator.enter(.accepted(key), of: endpoint, at: time)
      time += 60
    }
    #expect(
      await history()
        == ["key_published 1", "key_denied 9", "denied_key_seen 9", "denied_key_seen 9"])
  }

  private func deny(_ key: SPKIPin, with server: Server) async throws {
    let request = DocumentState.Request(who: "ada", at: Self.now + 90, why: "stolen")
    _ = try await server.coordinator.perform(at: request.at) {
      state, configured throws(AdministrationError) in
      try state.deny(key, configured: configured, force: false, request)
    }
  }

  @Test("has each entry once where the other server wrote on before the first asked again")
  func answerLostAndOvertaken() async throws {
    await store.get(into: .answersLost)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await store.get(into: .none)
    await other.coordinator.refresh(at: Self.now)
    _ = await other.coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 120)
    _ = await one.coordinator.enter(.accepted(pin(4)), of: endpoint, at: Self.now + 180)
    #expect(
      await history() == [
        "key_published 1", "key_published 2", "key_published 3", "key_published 4",
      ])
    #expect(one.pins == [pin(1), pin(2), pin(3), pin(4)])
  }

  @Test("has an entry that was not written, and what came meanwhile")
  func notWritten() async throws {
    await store.get(into: .refused)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    _ = await one.coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 60)
    await store.get(into: .none)
    await other.coordinator.refresh(at: Self.now)
    _ = await other.coordinator.enter(.accepted(pin(4)), of: endpoint, at: Self.now + 60)
    await one.coordinator.close(at: Self.now + 120)
    #expect(
      await history() == [
        "key_published 1", "key_published 4", "key_published 2", "key_published 3",
      ])
  }

  @Test("tells once what both servers found out")
  func bothFound() async throws {
    await store.get(into: .refused)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await store.get(into: .none)
    await other.coordinator.refresh(at: Self.now)
    _ = await other.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 90)
    await one.coordinator.close(at: Self.now + 120)
    #expect(await history() == ["key_published 1", "key_published 2"])
    #expect(one.pins == [pin(1), pin(2)])
  }

  @Test("has each entry once where what an administrator did carried it and its answer was lost")
  func changeByHand() async throws {
    await store.get(into: .refused)
    _ = await one.coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 60)
    await store.get(into: .answersLost)
    let change: @Sendable (inout DocumentState, [WatchedEndpoint]) -> [HistoryEntry] = { _, _ in
      [HistoryEntry(time: Self.now + 70, event: "noted", who: "ada")]
    }
    await #expect(throws: AdministrationError.self) {
      try await one.coordinator.perform(at: Self.now + 70, change)
    }
    await store.get(into: .none)
    _ = await one.coordinator.enter(.accepted(pin(3)), of: endpoint, at: Self.now + 80)
    #expect(
      await history() == ["key_published 1", "key_published 2", "noted 0", "key_published 3"])
  }
}
