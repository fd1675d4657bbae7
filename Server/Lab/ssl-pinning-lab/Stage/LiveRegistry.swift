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

/// The real registry server on a stage, with its default settings: it publishes formats 1 and 2, probes the
/// sites over TLS, has a SQLite store, and takes orders over HTTP only.
///
/// - The server and the devices use the same ``time``.
/// - The row answers its name lookups (``lead(_:to:)``), so endpoints can be on port 443 of many addresses,
///   and an attacker can be between this server and an endpoint and nowhere else.
/// - Apps refresh through ``wire``, behind which servers and attackers come and go.
final class LiveRegistry: Sendable {
  /// The document's file name, which is also the registry's name.
  static let file = "app.json"

  let time: VirtualTime
  let keys: LiveKeys
  /// The wire through which apps refresh.
  let wire: SwitchableRelay
  private let stage: Environment
  private let store: URL
  private let backup: URL
  private let copies: URL
  let clock: WrongClock
  let configuration: Locked<ServerConfiguration>
  private let observer: any EndpointProber
  private let names: Locked<[String: [Endpoint]]>
  /// The first one leads, the others follow.
  let servers = Locked<[RegistryService]>([])

  /// Runs a server that watches these sites until `body` returns. Its first document lists them all.
  ///
  /// - Parameters:
  ///   - authorities: CAs that the server trusts besides the stage's.
  ///   - vantagePoints: the proxies through which it also probes.
  ///   - massChange: what it does if most sites change at once.
  ///   - isCopying: whether it copies the document to `publish.dir`.
  ///   - clockWrongBy: seconds by which its clock is wrong from its first start on.
  ///   - silentNames: how many names in a zone that never answers it also watches, in their own document.
  ///     The sites' first document may then come later.
  static func run(
    _ stage: Environment, watching sites: [Site],
    believing authorities: [CertificateAuthority] = [],
    vantagePoints: [VantagePoint] = [], massChange: MassChangeMode = .alert,
    isCopying: Bool = false, clockWrongBy: Int64 = 0, silentNames: Int = 0,
    time: VirtualTime = VirtualTime(),
    _ body: (LiveRegistry) async throws -> Void
  ) async throws {
    let registry = try await LiveRegistry(
      stage, sites, [stage.authority] + authorities, vantagePoints, massChange, silentNames, time)
    if isCopying {
      registry.configuration.withLock {
        $0.publishing.directory = registry.copies.path(percentEncoded: false)
      }
    }
    registry.setClockWrong(bySeconds: clockWrongBy)
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
    _ vantagePoints: [VantagePoint], _ massChange: MassChangeMode, _ silentNames: Int,
    _ time: VirtualTime
  ) async throws {
    self.stage = stage
    self.time = time
    clock = WrongClock(time)
    let directory = try stage.makeDirectory()
    keys = try await LiveKeys(in: directory)
    store = directory.appending(path: "store", directoryHint: .isDirectory)
    backup = directory.appending(path: "backup", directoryHint: .isDirectory)
    copies = directory.appending(path: "public", directoryHint: .isDirectory)
    let anchors = directory.appending(path: "ca.pem")
    try authorities.map(\.root.pem).joined().write(to: anchors, atomically: true, encoding: .utf8)
    let tls = TLSConfiguration(
      directory: keys.directory.path(percentEncoded: false),
      timeout: silentNames > 0 ? Self.shortTimeout : TLSConfiguration().timeout,
      anchors: anchors.path(percentEncoded: false),
      vantagePoints: vantagePoints, massChange: massChange)
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
    // It leads nowhere until a server listens.
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
  /// Milliseconds for a probe while a zone is silent, and seconds for which its lookups hang. As in real life,
  /// lookups hang a little longer than a probe waits (with `up` the resolver gives up after five seconds), but both
  /// are shorter.
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

  /// The id of a site's endpoint.
  static func endpoint(_ host: String) -> String { "\(host):443" }

  /// Points the server's probes of a host to these ports.
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

  /// Starts a server on the store, and waits until it leads or, if another does, follows.
  func startServer() async throws {
    let server = try RegistryService(
      configuration: configuration.withLock { $0 }, clock: clock, log: .silent, observer: observer)
    try await server.start()
    servers.withLock { $0.append(server) }
    try leadWire()
    try await settle()
  }

  /// Stops the leader cleanly; the next server takes over.
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

  /// Copies the store, like a nightly backup. No server may be running.
  func copyStore() throws { try Self.replace(backup, by: store) }

  /// Replaces the store by the copy. No server may be running.
  func restoreStore() throws { try Self.replace(store, by: backup) }

  /// Deletes the store, like the loss of a disk. No server may be running.
  func loseStore() throws { try FileManager.default.removeItem(at: store) }

  private static func replace(_ directory: URL, by other: URL) throws {
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.copyItem(at: other, to: directory)
  }

  /// Makes the server read its files again, like SIGHUP.
  ///
  /// - Parameter sites: the sites in the new configuration; by default the old ones.
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

  /// Points the apps' wire to the server, or to an attacker's port.
  func leadWire(to port: UInt16? = nil) throws {
    if let port { return wire.redirect(to: .loopback(port)) }
    guard let own = try leader.address?.port else {
      throw Inconclusive("the server does not listen")
    }
    wire.redirect(to: .loopback(own))
  }

  // MARK: - People and apps

  /// An administrator with a token for a day.
  var administrator: LiveAdministrator {
    get throws {
      try LiveAdministrator(
        server: "http://127.0.0.1:\(wire.port)",
        token: AdminTokenIssuer(configuration.withLock { $0 })
          .token(for: "ada", at: clock.now(), ttl: 86_400))
    }
  }

  /// A token that another server of the same name would accept.
  func tokenOfAnotherServer() throws -> String {
    var other = configuration.withLock { $0 }
    other.server.key = Secret("another server's own secret")
    return try AdminTokenIssuer(other).token(for: "ada", at: clock.now(), ttl: 86_400)
  }

  /// Starts an app with the root key, on its own device.
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

/// The published document.
extension LiveRegistry {
  /// The current document.
  var document: PublishedDocument {
    get throws(Inconclusive) {
      guard let document = try leader.currentDocument(Self.file) else {
        throw Inconclusive("nothing is published")
      }
      return document
    }
  }

  /// Whether the document contains a text, such as a pin or a host.
  func publishes(_ text: String) -> Bool {
    ((try? document.bytes).map { String(decoding: $0, as: UTF8.self) } ?? "").contains(text)
  }

  /// Whether a host has an entry.
  func lists(_ host: String) -> Bool { publishes("\"domainName\":\"\(host)\"") }

  /// Checks that the document is signed under this key set.
  func mustBeOfEpoch(_ epoch: Int64) throws {
    let number = try document.number
    try show(number?.epoch == epoch, "epoch \(number?.epoch ?? -1) is published, and not \(epoch)")
  }

  /// Checks whether a key is listed.
  func mustList(_ identity: ServerIdentity, _ isListed: Bool = true) throws {
    let pin = try identity.pin.base64
    try show(
      lists(identity) == isListed,
      "\(pin) is \(isListed ? "not listed" : "still listed")")
  }

  /// Whether the document has this key.
  func lists(_ identity: ServerIdentity) throws -> Bool {
    publishes("\"key\":\"\(try identity.pin.base64)\"")
  }
}

/// What an attacker with the database's password does to the store, and how the operator repairs it.
extension LiveRegistry {
  /// Reads the record of the document.
  func readRecord(_ take: ([UInt8]) throws -> Void) async throws {
    let other = try SQLiteStore(path: storePath)
    let record = try await other.record(named: Self.file)
    await other.close()
    guard let record else { throw Inconclusive("the store has no record") }
    try take(record.bytes)
  }

  /// Overwrites the document's record as its next version, without the signing key, and waits until the server has
  /// noticed.
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

  /// Rebuilds the record from the last signed document: `store reset`.
  func resetRecord() async throws {
    let repair = try StoreRepair(configuration.withLock { $0 })
    _ = try await repair.reset(Self.file, to: .anew, at: clock.now())
    await repair.close()
    try await waitForAlerts("the record is not believed again") { $0.isEmpty }
    try await settle()
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

/// The passing of time for the server and the devices.
extension LiveRegistry {
  /// Lets seconds pass.
  func pass(seconds: Int64, step: Int64 = 1) async throws {
    for _ in 0..<(seconds / step) { try await pass(step) }
  }

  /// Lets days pass.
  ///
  /// - Parameter hours: the length of each step. Time between probes more than an hour apart counts as unwatched.
  func pass(days: Int64, hours: Int64 = 1) async throws {
    for _ in 0..<(days * 24 / hours) { try await pass(hours * Timeline.hour) }
  }

  /// Lets the grace time pass, after which a key that is no longer shown is withdrawn.
  func passGrace() async throws {
    try await pass(days: 7)
    try await pass(Timeline.hour)
    try await pass(Timeline.hour)
  }

  /// Sets the server's clock wrong. The devices' clocks stay right.
  ///
  /// - Parameter isKept: whether the kernel calls it synchronised.
  func setClockWrong(bySeconds seconds: Int64, isKept: Bool = false) {
    clock.error.withLock { $0 = seconds }
    clock.isKept.withLock { $0 = isKept }
  }

  private func pass(_ seconds: Int64) async throws {
    try await time.advance(milliseconds: seconds * 1000, leader, sleepers: sleepers)
  }

  /// Waits until nothing more happens unless time passes.
  func settle() async throws {
    try await time.untilAtRest(leader, sleepers: sleepers)
  }

  /// One sleeper for the probes, one for the documents, and one in each server that follows the store.
  private var sleepers: Int { 2 + servers.withLock(\.count) }
}
