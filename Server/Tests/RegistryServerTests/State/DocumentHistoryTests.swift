import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// Random histories of a document that two servers keep: probes, rotations, men in the middle, what people decide, a
/// store that fails, loses its answers or goes back, restarts and changes of the leader.
///
/// `FUZZ_SEEDS=1000` plays so many, from `FUZZ_FIRST` on.
@Suite("A document's history") struct DocumentHistoryTests {
  static let seeds: Range<UInt64> = {
    let environment = ProcessInfo.processInfo.environment
    let first = environment["FUZZ_FIRST"].flatMap(UInt64.init) ?? 0
    return first..<(first + (environment["FUZZ_SEEDS"].flatMap(UInt64.init) ?? 6))
  }()

  @Test(
    "lists no denied and no attacker's key, is never empty, never goes back, and has every steady key",
    arguments: seeds)
  func history(_ seed: UInt64) async throws {
    let history = try await DocumentHistory(seed)
    for _ in 0..<120 {
      await history.step()
      if let fault = await history.fault() {
        Issue.record("seed \(seed): \(fault)\n\(history.told.suffix(60).joined(separator: "\n"))")
        return
      }
    }
  }
}

/// One history. Keys are bytes; real servers' are under the CA 100, each attacker's under one of its own.
private final class DocumentHistory {
  private static let file = "all.json"
  private static let begin: Int64 = 1_780_000_000

  private struct Server {
    let published = PublishedDocuments(files: [DocumentHistory.file])
    let coordinator: DocumentCoordinator

    init(_ store: TroubledStore, _ settings: CoordinatorSettings, _ signer: DocumentSigner)
      async throws
    {
      coordinator = DocumentCoordinator(
        settings,
        services: CoordinatorServices(
          signing: Locked(signer), store: store, published: published, health: ServiceHealth(),
          log: .silent))
      try await coordinator.open(at: DocumentHistory.begin)
    }

    /// The keys that the document lists.
    var keys: Set<UInt8> {
      let bytes = published.document(DocumentHistory.file)?.bytes ?? []
      return Set(DocumentEntry.listed(in: bytes).compactMap(\.pin.bytes.first))
    }
  }

  private struct Site {
    var keys: [UInt8]
    var attacker: UInt8?
    var isDown = false
  }

  private let directory: TemporaryDirectory
  private let signer: DocumentSigner
  private let settings: CoordinatorSettings
  private let store = TroubledStore()
  private var servers: [Server]
  private var leader = 0
  private var random: SeededRandom
  private var now = DocumentHistory.begin
  private var lastKey: UInt8 = 0
  private var sites: [Site] = []
  private var attackers: Set<UInt8> = []
  /// What was acknowledged last about a key.
  private var denied: [UInt8: Bool] = [:]
  private var isStoreWell = true
  private var older: [StoredRecord] = []
  private var numbers: [Int: RegistryStamp.Version] = [:]
  private var contents: [RegistryStamp.Version: Set<UInt8>] = [:]
  private var lost: String?
  private(set) var told: [String] = []

  init(_ seed: UInt64) async throws {
    random = SeededRandom(seed)
    directory = try makeKeyDirectory()
    signer = try DocumentSigner(directory: directory.path())
    // The third has the hosts of the first.
    let hosts = [("a", "a"), ("b", "b"), ("c", "a")]
    let keys = hosts.map { "{fqdn: \($0).test, domainName: \($1).test, file: \(Self.file)}" }
    let read = try configuration(
      "keys: [\(keys.joined(separator: ", "))]\ntls: {grace: 2h}")
    settings = CoordinatorSettings(try #require(read.documents.first), tls: read.tls)
    servers = []
    for _ in 0..<2 { servers.append(try await Server(store, settings, signer)) }
    for _ in hosts { sites.append(Site(keys: (0...pick(2)).map { _ in newKey() })) }
  }

  private func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  private func newKey() -> UInt8 {
    lastKey += 1
    return lastKey
  }

  private func shown(_ index: Int) -> LedgerBench.View {
    let site = sites[index]
    guard !site.isDown else { return [(LedgerBench.here, "", .silent)] }
    return site.keys.enumerated().map { address, key in
      if address == 0, let attacker = site.attacker {
        return (LedgerBench.here, "0", .key(attacker, under: attacker &+ 100))
      }
      return (LedgerBench.here, "\(address)", .key(key))
    }
  }

  private func probe(_ index: Int, _ times: Int, with server: Server) async {
    let endpoint = settings.configuration.endpoints[index]
    for _ in 0..<times {
      now += 2
      let probe = LedgerBench.probe(shown(index))
      _ = await server.coordinator.enter(probe, of: endpoint, at: now)
    }
    guard times > 3, isStoreWell, !sites[index].isDown else { return }
    let state = await server.coordinator.state
    let known = state.keysByEndpoint[endpoint.id] ?? EndpointKeys()
    let missing = sites[index].keys.dropFirst(sites[index].attacker == nil ? 0 : 1).filter { key in
      !state.deniedPins.contains(pin(key)) && !known.keys.contains { $0.pin == pin(key) }
    }
    if !missing.isEmpty, known.authorities[pin(100)] != nil { lost = "steady: \(missing)" }
  }

  private func change(
    _ body:
      @escaping @Sendable (inout DocumentState, [WatchedEndpoint], DocumentState.Request)
      throws(AdministrationError) -> [HistoryEntry]
  ) async -> AdministrationError? {
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    do throws(AdministrationError) {
      _ = try await servers[leader].coordinator.perform(at: now) {
        state, configured throws(AdministrationError) in try body(&state, configured, request)
      }
      return nil
    } catch { return error }
  }

  func step() async {
    now += [2, 2, 2, 20, 60, 60, 700, 4000][pick(8)]
    let (server, index) = (servers[leader], pick(3))
    let id = settings.configuration.endpoints[index].id
    let what: String
    switch pick(20) {
    case 0..<7:
      let times = [1, 4][pick(2)]
      what = "probe \(index) \(times) times: \(shown(index))"
      await probe(index, times, with: server)
    case 7..<9:
      let address = pick(sites[index].keys.count)
      sites[index].keys[address] = newKey()
      what = "rotate \(index): \(sites[index].keys)"
    case 9:
      // Before the first sight there is no list to break into.
      let isListed = await server.coordinator.state.keysByEndpoint[id]?.isUnseen == false
      sites[index].attacker = sites[index].attacker == nil && isListed ? newKey() : nil
      if let attacker = sites[index].attacker { attackers.insert(attacker) }
      what = "attacker at \(index): \(sites[index].attacker ?? 0)"
    case 10:
      sites[index].isDown.toggle()
      what = "\(index) is \(sites[index].isDown ? "down" : "up")"
    case 11, 12: what = await deny()
    case 13: what = await allow()
    case 14:
      let key = newKey()
      let error = await change { state, _, request throws(AdministrationError) in
        try state.stage(pin(key), at: id, request)
      }
      what = "stage \(key) at \(index): \(error.map { "\($0)" } ?? "done")"
      if pick(2) == 0 { sites[index].keys[0] = key }
    case 15:
      leader = 1 - leader
      what = "\(leader) leads"
      await servers[leader].coordinator.lead(at: now)
    case 16:
      what = "\(1 - leader) follows"
      await servers[1 - leader].coordinator.refresh(at: now, isFollowing: true)
    case 17 where isStoreWell: what = await restart()
    case 18:
      isStoreWell.toggle()
      await store.get(into: isStoreWell ? .none : [.refused, .answersLost][pick(2)])
      what = "the store is \(isStoreWell ? "well" : "in trouble")"
      await server.coordinator.upkeep(at: now)
    case 19 where isStoreWell: what = await goBack()
    default:
      what = "the other one probes \(index), too"
      await probe(index, 3, with: servers[1 - leader])
    }
    told.append("t+\(now - Self.begin), \(leader) leads: \(what)")
    guard isStoreWell, pick(3) == 0, let record = try? await store.record(named: Self.file) else {
      return
    }
    older.append(record)
  }

  private func deny() async -> String {
    let known = await servers[leader].coordinator.state.keysByEndpoint.values.flatMap {
      $0.keys.map(\.pin) + $0.candidates.keys
    }.sorted()
    guard !known.isEmpty else { return "nothing to deny" }
    let (pin, isForced) = (known[pick(known.count)], pick(3) == 0)
    let key = pin.bytes[0]
    let error = await change { state, configured, request throws(AdministrationError) in
      try state.deny(pin, configured: configured, force: isForced, request)
    }
    if error == nil { denied[key] = true }
    if case .notStored? = error { denied[key] = nil }
    return "deny \(key): \(error.map { "\($0)" } ?? "done")"
  }

  private func allow() async -> String {
    let all = denied.filter(\.value).keys.sorted()
    guard !all.isEmpty else { return "nothing to allow" }
    let key = all[pick(all.count)]
    let error = await change { state, _, request throws(AdministrationError) in
      try state.allow(pin(key), request)
    }
    denied[key] = error == nil ? false : nil
    if case .noSuchKey? = error { lost = "the denial of \(key)" }
    return "allow \(key): \(error.map { "\($0)" } ?? "done")"
  }

  private func restart() async -> String {
    let index = pick(2)
    if pick(2) == 0 { await servers[index].coordinator.close(at: now) }
    do { servers[index] = try await Server(store, settings, signer) } catch { lost = "\(error)" }
    if index == leader { await servers[index].coordinator.lead(at: now) }
    return "\(index) starts anew"
  }

  /// While servers run that know better.
  private func goBack() async -> String {
    guard !older.isEmpty else { return "nothing to go back to" }
    let record = older[pick(older.count)]
    await servers[leader].coordinator.refresh(at: now)
    let way = pick(3)
    switch way {
    case 0: await store.lose(to: record, named: Self.file)
    case 1: await store.goBack(to: record, named: Self.file)
    default: await store.lose(to: nil, named: Self.file)
    }
    await servers[leader].coordinator.upkeep(at: now)
    return "the store goes back, way \(way)"
  }

  /// What is wrong now; `nil` if nothing is.
  func fault() async -> String? {
    if let lost { return "lost: \(lost)" }
    for (index, server) in servers.enumerated() {
      guard let document = server.published.document(Self.file), let number = document.number else {
        continue
      }
      let keys = server.keys
      if keys.isEmpty { return "\(index) lists nothing" }
      if let last = numbers[index], number < last { return "\(index) went back" }
      numbers[index] = number
      if let other = contents[number], other != keys { return "two documents are \(number)" }
      contents[number] = keys
      if !keys.isDisjoint(with: attackers) {
        return "\(index) lists an attacker's \(keys.intersection(attackers))"
      }
      // The other one has not heard of it yet.
      guard index == leader, isStoreWell else { continue }
      let refused = keys.filter { denied[$0] == true }
      if !refused.isEmpty, refused != keys { return "denied keys are listed: \(refused)" }
    }
    return nil
  }
}
