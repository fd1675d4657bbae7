import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// Two servers on one store that fails now and then, with probes and people's changes in any order.
@Suite("Whatever comes in whichever order", .timeLimit(.minutes(2)))
struct KeeperOrderTests {
  private static let file = "all.json"
  private static let hosts = ["a.test", "b.test", "c.test"]
  private static let start: Int64 = 1_780_000_000

  /// A server without its monitor and its listener.
  private struct Server: Sendable {
    let published = PublishedDocuments(files: [KeeperOrderTests.file])
    let coordinator: DocumentCoordinator
    let endpoints: [WatchedEndpoint]

    init(_ store: UnreliableStore, signer: DocumentSigner) throws {
      let keys = KeeperOrderTests.hosts.map { "{fqdn: \($0), domainName: \($0), file: all.json}" }
      let document = try #require(
        try configuration("keys: [\(keys.joined(separator: ","))]").documents.first)
      endpoints = document.endpoints
      coordinator = DocumentCoordinator(
        CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 2)),
        services: CoordinatorServices(
          signing: Locked(signer), store: store, published: published, health: ServiceHealth(),
          log: .silent))
    }
  }

  /// What was acknowledged, and what was published.
  private struct Book: Sendable {
    var staged: [String: Int] = [:]
    var denied: Set<SPKIPin> = []
    /// Documents by their number.
    var documents: [RegistryStamp.Version: [UInt8]] = [:]
    var faults: [String] = []
  }

  private static func run(
    _ server: Server, seed: UInt64, as who: String, time: Locked<Int64>, _ book: Locked<Book>
  ) async {
    var random = SeededRandom(seed)
    var last: RegistryStamp.Version?
    for step in 0..<60 {
      let now = time.withLock { time in
        time += 1
        return time
      }
      let endpoint = server.endpoints[Int.random(in: 0..<3, using: &random)]
      let request = DocumentState.Request(who: who, at: now, why: "\(who) \(step)")
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let key = UInt8.random(in: 1...4, using: &random)
        _ = await server.coordinator.enter(.accepted(pin(key)), of: endpoint, at: now)
      case 5..<7:
        let key = pin(UInt8.random(in: 10...250, using: &random))
        let entries = try? await server.coordinator.perform(at: now) {
          state, _ throws(AdministrationError) in try state.stage(key, at: endpoint.id, request)
        }
        for entry in entries ?? [] { book.withLock { $0.staged[entry.why, default: 0] += 1 } }
      case 7:
        let key = pin(UInt8.random(in: 1...4, using: &random))
        let entries = try? await server.coordinator.perform(at: now) {
          state, configured throws(AdministrationError) in
          try state.deny(key, configured: configured, force: false, request)
        }
        if entries?.isEmpty == false { book.withLock { _ = $0.denied.insert(key) } }
      case 8: await server.coordinator.refresh(at: now)
      default: await server.coordinator.upkeep(at: now)
      }
      note(server, &last, book)
    }
  }

  /// What a client that asks this server now gets.
  private static func note(
    _ server: Server, _ last: inout RegistryStamp.Version?, _ book: Locked<Book>
  ) {
    guard let document = server.published.document(file), let number = document.number else {
      return
    }
    let before = last
    last = number
    book.withLock { book in
      if let before, number < before { book.faults.append("\(number) after \(before)") }
      if let known = book.documents[number], known != document.bytes {
        book.faults.append("two documents of the number \(number)")
      }
      book.documents[number] = document.bytes
    }
  }

  @Test(
    "nothing acknowledged is lost, nothing is told twice, and no number has two documents",
    arguments: UInt64(1)...8)
  func everything(_ seed: UInt64) async throws {
    let directory = try makeKeyDirectory()
    let signer = try DocumentSigner(directory: directory.path())
    let store = UnreliableStore(seed: seed)
    let servers = try [Server(store, signer: signer), Server(store, signer: signer)]
    let (time, book) = (Locked(Self.start), Locked(Book()))
    await withTaskGroup(of: Void.self) { group in
      for (index, server) in servers.enumerated() {
        for worker in 0..<2 {
          let number = UInt64(2 * index + worker)
          group.addTask {
            await Self.run(
              server, seed: seed &* 1000 &+ number, as: "worker \(number)", time: time, book)
          }
        }
      }
    }
    await store.calm()
    let end = time.withLock { $0 } + 1
    // Each may have something to add to what the other wrote; that comes to an end.
    var written = -1
    for _ in 0..<10 where await store.records.count != written {
      written = await store.records.count
      for server in servers { await server.coordinator.upkeep(at: end) }
    }
    #expect(await store.records.count == written)
    for server in servers { await server.coordinator.refresh(at: end) }
    let found = book.withLock { $0 }
    #expect(found.faults == [])
    #expect(found.documents.count > 1)

    // Everybody gets what is stored, and everything published was stored first.
    let states = try await store.records.map {
      try DocumentState(decoding: $0.bytes, file: Self.file)
    }
    let final = try #require(states.last)
    for server in servers {
      #expect(server.published.document(Self.file)?.bytes == final.document)
      let content = DocumentContent(final, endpoints: server.endpoints)
      #expect(content.isSaid(by: final.document))
    }
    let stored = Set(states.map(\.document))
    #expect(found.documents.values.allSatisfy(stored.contains))
    #expect(found.denied.isSubset(of: final.deniedPins))

    // What people did stands in the history once, and what the monitors wrote was written once.
    let entries = try await store.history(of: Self.file, before: nil, limit: 10_000)
      .compactMap { HistoryEntry(try JSONValue(parsing: $0.bytes)) }
    let staged = entries.filter { $0.event == "key_staged" }
    for why in found.staged.keys { #expect(staged.count { $0.why == why } == 1, "\(why)") }
    #expect(Set(staged.map(\.why)).count == staged.count)
    // Each probe has a time of its own, so nothing is the same to the letter by chance.
    #expect(Set(entries).count == entries.count)
    // Nor is a key told of as new by each of the two that found it.
    let published = entries.filter { $0.event == "key_published" }
    let names = published.map { "\($0.endpoint) \($0.pin?.base64 ?? "")" }
    #expect(Set(names).count == names.count)
    for entry in staged where found.staged[entry.why] != nil {
      #expect(final.keysByEndpoint[entry.endpoint]?.keys.contains { $0.pin == entry.pin } == true)
    }
  }
}
