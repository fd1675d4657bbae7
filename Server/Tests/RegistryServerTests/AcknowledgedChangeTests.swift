import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("A change that is acknowledged") struct AcknowledgedChangeTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "all.json"

  /// A server whose two endpoints show the keys 1 and 2.
  private struct Server {
    let published = PublishedDocuments(files: [AcknowledgedChangeTests.file])
    let coordinator: DocumentCoordinator

    /// Two endpoints, the first under this name.
    static func settings(_ first: String = "a", confirmations: Int = 1) throws
      -> CoordinatorSettings
    {
      let keys = [(first, "a"), ("b", "b")].map {
        "{fqdn: \($0).test, domainName: \($1).test, file: all.json}"
      }
      let document = try #require(
        try configuration("keys: [\(keys.joined(separator: ","))]").documents.first)
      return CoordinatorSettings(document, tls: TLSConfiguration(confirmations: confirmations))
    }

    init(
      _ store: TroubledStore, confirmations: Int = 1,
      services change: (inout CoordinatorServices) -> Void = { _ in }
    ) async throws {
      var services = CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: published, health: ServiceHealth(), log: .silent)
      change(&services)
      coordinator = DocumentCoordinator(
        try Self.settings(confirmations: confirmations), services: services)
      try await coordinator.open()
    }

    var pins: Set<SPKIPin> {
      Set(published.content(AcknowledgedChangeTests.file)?.entries.map(\.pin) ?? [])
    }

    func probe(_ endpoint: Int = 0, shows key: UInt8) async {
      _ = await coordinator.enter(
        .accepted(pin(key)), of: coordinator.endpoints[endpoint],
        at: AcknowledgedChangeTests.now + 20)
    }

    func change(
      _ body:
        @escaping @Sendable (inout DocumentState, [WatchedEndpoint], DocumentState.Request)
        throws(AdministrationError) -> [HistoryEntry]
    ) async throws(AdministrationError) {
      let request = DocumentState.Request(
        who: "ada", at: AcknowledgedChangeTests.now + 10, why: "because")
      _ = try await coordinator.perform(at: request.at) {
        state, configured throws(AdministrationError) in
        try body(&state, configured, request)
      }
    }

    func deny(_ key: UInt8) async throws(AdministrationError) {
      try await change { state, configured, request throws(AdministrationError) in
        try state.deny(pin(key), configured: configured, force: true, request)
      }
    }
  }

  private let store = TroubledStore()

  /// A server that has published the keys.
  private func started(confirmations: Int = 1) async throws -> Server {
    let server = try await Server(store, confirmations: confirmations)
    for endpoint in 0..<2 { await server.probe(endpoint, shows: UInt8(endpoint) + 1) }
    try #require(server.pins == [pin(1), pin(2)])
    return server
  }

  @Test("holds if there was nothing to change, and the answer to the change before was lost")
  func unanswered() async throws {
    let server = try await started()
    try await server.deny(1)
    await store.get(into: .answersLost)
    await #expect(throws: AdministrationError.self) {
      try await server.change { state, _, request throws(AdministrationError) in
        try state.allow(pin(1), request)
      }
    }
    await store.get(into: .none)
    try await server.deny(1)
    await server.coordinator.upkeep(at: Self.now + 60)
    #expect(server.pins == [pin(2)])
    let record = try #require(try await store.record(named: Self.file))
    #expect(try DocumentState(decoding: record.bytes, file: Self.file).deniedPins == [pin(1)])
  }

  @Test("is in the store if another document was the first to know")
  func knownBefore() async throws {
    let server = try await started()
    await store.fail(true)
    server.coordinator.services.denials.withLock { shared in
      var other = DocumentState()
      other.denied = [.init(pin: pin(1), at: Self.now, by: "ada", why: "")]
      shared.enter(other)
    }
    await server.coordinator.shareDenials(at: Self.now)
    await #expect(throws: AdministrationError.self) { try await server.deny(1) }
    await store.fail(false)
    try await server.deny(1)
    #expect(server.pins == [pin(2)])
  }

  @Test("is published before every endpoint was probed, if the store lost the document meanwhile")
  func lostMeanwhile() async throws {
    _ = try await started()
    let server = try await Server(store)
    #expect(server.published.document(Self.file) != nil)
    await store.lose(to: nil, named: Self.file)
    await server.coordinator.upkeep(at: Self.now + 9)
    try await server.deny(1)
    #expect(server.pins == [pin(2)])
  }

  /// Else the edit is judged without it, and the change, acknowledged later, is lost to the edit.
  @Test("is waited for while it is being stored, before an edit of the configuration is judged")
  func beingStored() async throws {
    let server = try await started()
    let gate = Gate()
    await store.hold(at: gate)
    async let change: Void = server.deny(1)
    #expect(await eventually { gate.count == 1 })
    async let settled = server.coordinator.settledState()
    for _ in 0..<2000 { await Task.yield() }
    gate.open()
    #expect(await settled.deniedPins == [pin(1)])
    try await change
  }

  @Test("waits while an edit of the configuration is judged and taken in force")
  func heldByEdit() async throws {
    let server = try await started()
    let edits = server.coordinator.services.edits
    edits.close()
    async let change: Void = server.deny(1)
    #expect(await eventually { edits.waits == 1 })
    #expect(server.pins == [pin(1), pin(2)])
    edits.open()
    try await change
    #expect(server.pins == [pin(2)])
  }

  @Test(
    "if it is a denial, is in documents that an edit brings meanwhile before it is acknowledged",
    arguments: [false, true])
  func broughtMeanwhile(isBegun: Bool) async throws {
    let documents = try configuration(
      "keys: [{fqdn: a.test, file: a.json}, {fqdn: b.test, file: b.json}]"
    ).documents
    let published = PublishedDocuments(files: documents.map(\.file))
    let services = CoordinatorServices(
      signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
      published: published, health: ServiceHealth(), log: .silent)
    let coordinators = documents.map {
      DocumentCoordinator(
        CoordinatorSettings($0, tls: TLSConfiguration(confirmations: 1)), services: services)
    }
    for (coordinator, document) in zip(coordinators, documents) {
      try await coordinator.open(at: Self.now)
      let endpoint = try #require(document.endpoints.first)
      for (key, time) in [(UInt8(1), Self.now), (2, Self.now + 5)] {
        _ = await coordinator.enter(.accepted(pin(key)), of: endpoint, at: time)
      }
    }
    let (inForce, edits, gate) = (Locked([coordinators[0]]), services.edits, Gate())
    let administration = RegistryAdministration(
      coordinators: { inForce.withLock { $0 } }, store: store,
      clock: SteadyClock(TestClock(Self.now + 70)), changed: { _ in })
    if isBegun { await store.hold(at: gate) } else { edits.close() }
    let change = Task {
      _ = try await administration.perform(
        .deny(pin(1), force: true), by: "ada", why: "stolen", noting: { _ in })
    }
    if isBegun {
      #expect(await eventually { gate.count == 1 })
      edits.close()
      gate.open()
    }
    #expect(await eventually(within: 10) { edits.waits == 1 })
    inForce.withLock { $0 = coordinators }
    edits.open()
    try await change.value
    for file in ["a.json", "b.json"] {
      #expect(Set(published.content(file)?.entries.map(\.pin) ?? []) == [pin(2)])
    }
  }

  @Test("holds for an endpoint that an edit renames while it is being stored")
  func renamedMeanwhile() async throws {
    let server = try await started()
    await server.probe(shows: 3)
    #expect(server.pins == [pin(1), pin(2), pin(3)])
    let id = await server.coordinator.endpoints[0].id
    let gate = Gate()
    await store.hold(at: gate)
    async let change: Void = server.change {
      state, configured, request throws(AdministrationError) in
      try state.revoke(pin(1), at: id, configured: configured, force: false, request)
    }
    #expect(await eventually { gate.count == 1 })
    let (coordinator, settings) = (server.coordinator, try Server.settings("c"))
    let isTaken = Locked(false)
    let edit = Task {
      await coordinator.reconfigure(settings)
      isTaken.withLock { $0 = true }
    }
    while await coordinator.waiting.isEmpty, !isTaken.withLock({ $0 }) { await Task.yield() }
    gate.open()
    try await change
    await edit.value
    await server.coordinator.upkeep(at: Self.now + 60)
    #expect(server.pins == [pin(2), pin(3)])
  }

  @Test("leaves other servers time for theirs: half of what it took, and not for ever")
  func turns() async throws {
    let (time, took, pauses) = (Locked<Int64>(0), Locked<Int64>(0), Locked([Int64]()))
    let server = try await Server(store) { services in
      // Each reading of the clock is so much later.
      services.ticks = {
        time.withLock {
          $0 += took.withLock { $0 }
          return $0
        }
      }
      services.pause = { left in
        pauses.withLock { $0.append(left) }
        time.withLock { $0 += left }
      }
    }
    for endpoint in 0..<2 { await server.probe(endpoint, shows: UInt8(endpoint) + 1) }
    try await server.deny(7)
    took.withLock { $0 = 400 }
    try await server.deny(8)
    took.withLock { $0 = 0 }
    try await server.deny(9)
    try await server.deny(10)
    took.withLock { $0 = 90_000 }
    try await server.deny(11)
    took.withLock { $0 = 0 }
    try await server.deny(12)
    #expect(pauses.withLock { $0 } == [200, 10_000])
  }

  @Test("takes no probe away from a key that waits for more")
  func waiting() async throws {
    let server = try await started(confirmations: 3)
    for note in ["one", "two"] {
      await server.probe(shows: 3)
      try await server.change { state, _, request in
        [HistoryEntry(time: request.at, event: note, who: "ada")]
      }
    }
    await server.probe(shows: 3)
    #expect(server.pins == [pin(1), pin(2), pin(3)])
  }
}
