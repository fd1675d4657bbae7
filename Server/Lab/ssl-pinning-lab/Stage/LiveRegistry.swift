import FaultLab
import Foundation
import HTTPServing
import RegistryCore
import RegistryServer
import RegistryStores
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The real registry server on a stage, at the settings that it is shipped with: it publishes formats 1
/// and 2, probes the sites over TLS, keeps a SQLite store, and obeys people over HTTP alone.
///
/// - Time is ``time``, for the server and the devices alike.
/// - Its name service is the row's (``lead(_:to:)``), so endpoints stand on port 443 of many addresses,
///   and an attacker can stand between this server and an endpoint without being anywhere else.
/// - Apps ask through ``wire``, behind which servers come and go, and attackers.
final class LiveRegistry: Sendable {
  /// The document's file, and so the registry's name.
  static let file = "app.json"

  let time: VirtualTime
  let keys: LiveKeys
  /// Where apps ask.
  let wire: SwitchableRelay
  private let stage: Environment
  private let store: URL
  private let backup: URL
  let clock: WrongClock
  let configuration: Locked<ServerConfiguration>
  private let observer: any EndpointProber
  private let names: Locked<[String: [Endpoint]]>
  /// The first one leads, the others follow.
  let servers = Locked<[RegistryService]>([])

  /// Runs a server that watches these sites until `body` is over. It begins with a document that lists
  /// them all.
  ///
  /// - Parameters:
  ///   - authorities: whose certificates the server believes, beside the stage's.
  ///   - vantagePoints: the ports of proxies that it probes through as well.
  ///   - massChange: what it does where most sites change at once.
  ///   - silentNames: how many names of a zone that never answers it watches as well, in a document of
  ///     their own. The first document of the sites may then come later.
  static func run(
    _ stage: Environment, watching sites: [Site],
    believing authorities: [CertificateAuthority] = [],
    vantagePoints: [UInt16] = [], massChange: MassChangeMode = .alert, silentNames: Int = 0,
    time: VirtualTime = VirtualTime(),
    _ body: (LiveRegistry) async throws -> Void
  ) async throws {
    let registry = try await LiveRegistry(
      stage, sites, [stage.authority] + authorities, vantagePoints, massChange, silentNames, time)
    do {
      try await registry.startServer()
      if silentNames == 0 {
        try show(sites.allSatisfy { registry.lists($0.host) }, "the first document lacks a site")
      }
      try await body(registry)
      await registry.stopServers()
    } catch {
      await registry.stopServers()
      throw error
    }
  }

  private init(
    _ stage: Environment, _ sites: [Site], _ authorities: [CertificateAuthority],
    _ vantagePoints: [UInt16], _ massChange: MassChangeMode, _ silentNames: Int, _ time: VirtualTime
  ) async throws {
    self.stage = stage
    self.time = time
    clock = WrongClock(time)
    let directory = try stage.makeDirectory()
    keys = try await LiveKeys(in: directory)
    store = directory.appending(path: "store", directoryHint: .isDirectory)
    backup = directory.appending(path: "backup", directoryHint: .isDirectory)
    let anchors = directory.appending(path: "ca.pem")
    try authorities.map(\.root.pem).joined().write(to: anchors, atomically: true, encoding: .utf8)
    let tls = TLSConfiguration(
      directory: keys.directory.path(percentEncoded: false),
      timeout: silentNames > 0 ? Self.shortTimeout : TLSConfiguration().timeout,
      anchors: anchors.path(percentEncoded: false),
      vantagePoints: vantagePoints.enumerated().map {
        VantagePoint(name: "vantage\($0)", host: "127.0.0.1", port: $1)
      }, massChange: massChange)
    configuration = Locked(
      ServerConfiguration(
        documents: try Self.documents(sites) + Self.silent(silentNames),
        listen: ListenAddress("127.0.0.1:0") ?? .standard,
        storage: .sqlite(
          path: store.appending(path: "registry.db").path(percentEncoded: false)),
        tls: tls))
    let names = Locked<[String: [Endpoint]]>([:])
    for site in sites { names.withLock { $0[site.host] = [.loopback(site.server.port)] } }
    self.names = names
    observer = try TLSEndpointProber(
      tls,
      resolver: NameResolver { host, _ in
        if host.hasSuffix(Self.silentZone) {
          Thread.sleep(forTimeInterval: Self.silence)
          return .failure(NameResolver.Failure(reason: "nobody answered", isFinal: false))
        }
        guard let found = names.withLock({ $0[host] }) else {
          return .failure(NameResolver.Failure(reason: "no such name"))
        }
        return .success(found)
      })
    // Nowhere, until a server listens.
    wire = try SwitchableRelay(to: .loopback(9))
  }

  private static func documents(_ sites: [Site]) throws -> [DocumentConfiguration] {
    let endpoints = try sites.map { site in
      let host = try HostName(site.host)
      return WatchedEndpoint(fqdn: host, patterns: [.exact(host)])
    }
    return [DocumentConfiguration(file: file, endpoints: endpoints)]
  }

  private static let silentZone = ".silent.test"
  /// Milliseconds for a probe while a zone is silent, and the seconds for which its lookups hang: as in life a
  /// little longer than anybody waits for them (`up` has the resolver give up after five seconds), but sooner over.
  private static let shortTimeout: Int64 = 600
  private static let silence = 0.7

  private static func silent(_ count: Int) throws -> [DocumentConfiguration] {
    guard count > 0 else { return [] }
    let endpoints = try (0..<count).map { number in
      let host = try HostName("host\(number)\(silentZone)")
      return WatchedEndpoint(fqdn: host, patterns: [.exact(host)])
    }
    return [DocumentConfiguration(file: "silent.json", endpoints: endpoints)]
  }

  /// What tells a site's endpoint apart.
  static func endpoint(_ host: String) -> String { "\(host):443" }

  /// Leads the server's probes a host to these ports.
  func lead(_ host: String, to ports: UInt16...) {
    names.withLock { $0[host] = ports.map { .loopback($0) } }
  }

  // MARK: - Servers

  /// The server that leads.
  var leader: RegistryService {
    get throws(Inconclusive) {
      guard let leader = servers.withLock(\.first) else { throw Inconclusive("no server is up") }
      return leader
    }
  }

  /// Starts a server on the store and waits until it leads or, where another does, follows.
  func startServer() async throws {
    let server = try RegistryService(
      configuration: configuration.withLock { $0 }, clock: clock, log: .silent, observer: observer)
    try await server.start()
    servers.withLock { $0.append(server) }
    try leadWire()
    try await settle()
  }

  /// Stops the server that leads, cleanly; the next one takes over.
  func stopServer() async throws {
    let server = try leader
    await server.stop()
    servers.withLock { _ = $0.removeFirst() }
    guard servers.withLock({ !$0.isEmpty }) else { return wire.redirect(to: .loopback(9)) }
    try leadWire()
    try await settle()
  }

  /// The file of the store.
  var storePath: String { store.appending(path: "registry.db").path(percentEncoded: false) }

  /// Copies the store, as a nightly copy does. No server may be up.
  func copyStore() throws { try Self.replace(backup, by: store) }

  /// Puts the copy in the place of the store. No server may be up.
  func restoreStore() throws { try Self.replace(store, by: backup) }

  /// Has a disk lose the store. No server may be up.
  func loseStore() throws { try FileManager.default.removeItem(at: store) }

  private static func replace(_ directory: URL, by other: URL) throws {
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.copyItem(at: other, to: directory)
  }

  /// Has the server read its files again, as SIGHUP does.
  ///
  /// - Parameter sites: what the configuration names from now on; as before by default.
  func reload(watching sites: [Site]? = nil) async throws {
    let documents = try sites.map { try Self.documents($0) }
    let new = configuration.withLock { configuration in
      configuration.documents = documents ?? configuration.documents
      return configuration
    }
    try await leader.reload(new)
    try await settle()
  }

  private func stopServers() async {
    for server in servers.withLock({ $0 }) { await server.stop() }
  }

  /// Leads apps to the server, or to whoever stands in its place.
  func leadWire(to port: UInt16? = nil) throws {
    if let port { return wire.redirect(to: .loopback(port)) }
    guard let own = try leader.address?.port else {
      throw Inconclusive("the server does not listen")
    }
    wire.redirect(to: .loopback(own))
  }

  // MARK: - People and apps

  /// Somebody with a token for a day.
  var administrator: LiveAdministrator {
    get throws {
      try LiveAdministrator(
        server: "http://127.0.0.1:\(wire.port)",
        token: AdminTokenIssuer(configuration.withLock { $0 })
          .token(for: "ada", at: clock.now(), ttl: 86_400))
    }
  }

  /// A token that another server of the same name would take.
  func tokenOfAnotherServer() throws -> String {
    var other = configuration.withLock { $0 }
    other.server.key = Secret("another server's own secret")
    return try AdminTokenIssuer(other).token(for: "ada", at: clock.now(), ttl: 86_400)
  }

  /// Starts an app, a device of its own with the root key in it.
  ///
  /// - Parameter error: seconds by which the device's clock is wrong.
  func startApp(
    clockWrongBy error: Int64 = 0, _ adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws -> App {
    var config = stage.config()
    config.endpointUrl = "http://127.0.0.1:\(wire.port)/api/v1/\(Self.file)"
    config.rootKeys = [keys.shippedRoot]
    config.storage = .directory(try stage.makeDirectory())
    adjust(&config)
    return App(try await SslPinningClient(config: config, clocks: time.clocks(wrongBy: error)))
  }
}

/// What is published.
extension LiveRegistry {
  /// The document as it is published.
  var document: PublishedDocument {
    get throws(Inconclusive) {
      guard let document = try leader.currentDocument(Self.file) else {
        throw Inconclusive("nothing is published")
      }
      return document
    }
  }

  /// Whether a text, such as a pin or a host, stands in the document.
  func publishes(_ text: String) -> Bool {
    ((try? document.bytes).map { String(decoding: $0, as: UTF8.self) } ?? "").contains(text)
  }

  /// Whether a host has an entry.
  func lists(_ host: String) -> Bool { publishes("\"domainName\":\"\(host)\"") }

  /// That what is published is signed under this key set.
  func mustBeOfEpoch(_ epoch: Int64) throws {
    let number = try document.number
    try show(number?.epoch == epoch, "epoch \(number?.epoch ?? -1) is published, and not \(epoch)")
  }

  /// That a key is listed, or is not.
  func mustList(_ identity: ServerIdentity, _ isListed: Bool = true) throws {
    let pin = try identity.pin.base64
    try show(
      lists(identity) == isListed,
      "\(pin) is \(isListed ? "not listed" : "still listed")")
  }

  /// Whether what is published has this key.
  func lists(_ identity: ServerIdentity) throws -> Bool {
    publishes("\"key\":\"\(try identity.pin.base64)\"")
  }
}

/// What somebody with the database's password does to the store, and what the operator does about it.
extension LiveRegistry {
  /// Reads the record of the document.
  func readRecord(_ take: ([UInt8]) throws -> Void) async throws {
    let other = try SQLiteStore(path: storePath)
    let record = try await other.record(named: Self.file)
    await other.close()
    guard let record else { throw Inconclusive("the store has no record") }
    try take(record.bytes)
  }

  /// Writes over the record of the document under the next version, without the signing key, and waits until the
  /// server has noticed.
  func editRecord(_ edit: ([UInt8]) throws -> [UInt8]) async throws {
    let other = try SQLiteStore(path: storePath)
    guard let record = try await other.record(named: Self.file) else {
      throw Inconclusive("the store has no record")
    }
    let made = try await other.replace(
      Self.file, version: record.version, with: try edit(record.bytes))
    await other.close()
    try show(made == .replaced(version: record.version + 1), "the record was not edited")
    try await waitForAlerts("nobody is told of the edited record") { $0.contains("seal-broken") }
  }

  /// Has the record begin anew from the last signed document: `store reset`.
  func resetRecord() async throws {
    let repair = try StoreRepair(configuration.withLock { $0 })
    _ = try await repair.reset(Self.file, to: .anew, at: clock.now())
    await repair.close()
    try await waitForAlerts("the record is not believed again") { $0.isEmpty }
    try await settle()
  }

  /// Shows that a server does not go on from a store that is gone, and says that it is a new one:
  /// `store reset .store --anew`. No server may be up.
  func takeStoreForNew() async throws {
    let repair = try StoreRepair(configuration.withLock { $0 })
    do {
      _ = try await repair.reset(Self.file, to: .anew, at: clock.now())
      throw Inconclusive("an empty store is taken for a new one")
    } catch StoreRepairError.store(.seal(.vanished(record: ".store"))) {}
    _ = try await repair.reset(".store", to: .anew, at: clock.now())
    await repair.close()
  }

  private func waitForAlerts(
    _ complaint: String, _ isSo: ([String]) -> Bool
  ) async throws {
    for _ in 0..<500 {
      if isSo(try await administrator.alerts()) { return }
      try await Task.sleep(nanoseconds: 20_000_000)
    }
    throw Inconclusive(complaint)
  }
}

/// Time that goes by for the server and the devices.
extension LiveRegistry {
  /// Lets seconds go by.
  func pass(seconds: Int64, step: Int64 = 1) async throws {
    for _ in 0..<(seconds / step) { try await pass(step) }
  }

  /// Lets days go by.
  ///
  /// - Parameter hours: of each step. Probes more than an hour apart count as unwatched.
  func pass(days: Int64, hours: Int64 = 1) async throws {
    for _ in 0..<(days * 24 / hours) { try await pass(hours * Timeline.hour) }
  }

  /// Lets the time go by after which a key that nobody shows any more is withdrawn.
  func passGrace() async throws {
    try await pass(days: 7)
    try await pass(Timeline.hour)
    try await pass(Timeline.hour)
  }

  /// Sets the server's clock wrong. The devices' clocks are right.
  ///
  /// - Parameter isKept: whether the kernel calls it synchronised.
  func setClockWrong(bySeconds seconds: Int64, isKept: Bool = false) {
    clock.error.withLock { $0 = seconds }
    clock.isKept.withLock { $0 = isKept }
  }

  private func pass(_ seconds: Int64) async throws {
    try await time.advance(milliseconds: seconds * 1000, leader, sleepers: sleepers)
  }

  /// Waits until nothing happens any more unless time goes by.
  func settle() async throws {
    try await time.untilAtRest(leader, sleepers: sleepers)
  }

  /// One that probes, one that sees to documents, and in each server one that follows the store.
  private var sleepers: Int { 2 + servers.withLock(\.count) }
}
