import CanonicalJSON
import FaultLab
import Foundation
import RegistryCore
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The world behind the playground's page: the drill's stage, with buttons.
///
/// - A real registry server, real endpoints, a real man in the middle, and an app with two sessions, all on loopback
///   and on one clock, which goes on second by second and can be turned forward.
/// - One order is carried out after the other, so that what the page shows never mixes two.
actor Playground {
  /// A host of the app, and who stands in front of it.
  struct Host {
    let site: Site
    /// Whether the registry watches it.
    let isWatched: Bool
    /// Stands between, if there is one.
    var attacker: InterceptingProxy?
    var fates: [PlaygroundSession: PlaygroundFate] = [:]
    var listed: [String] = []
  }

  /// What the app's way to the registry leads to.
  enum Road: String {
    case open
    /// A network that plays an old list back.
    case rolledBack = "rolled-back"
    /// A thief with the online key.
    case forged
  }

  let scene: LiveScene
  let clients: PlaygroundClients
  var hosts: [Host]
  var road = Road.open
  /// Serves what is not the registry's.
  var impostor: LocalHTTPServer?
  /// The list of the beginning.
  let first: [UInt8]
  var isRegistryUp = true
  var isSendingByItself = false
  private(set) var log = PlaygroundLog()
  private var history = PlaygroundHistory()
  /// Names of keys by their pins.
  private var names: [String: String] = [:]
  private var counts: [PlaygroundSession: [PlaygroundFate: Int]] = [:]
  /// What attackers read of each session, in bytes.
  private var bytesRead: [PlaygroundSession: Int] = [:]
  private var refreshed: Int64
  private var orders: [PlaygroundOrder] = []
  private var isOver = false
  private var worker: Task<Void, Never>?

  /// So many orders wait; more are dropped.
  private static let patience = 16

  init(_ scene: LiveScene, watched: [Site], unlisted: Site) async throws {
    self.scene = scene
    clients = try PlaygroundClients(scene.app.client, trust: scene.stage.trust)
    hosts =
      watched.map { Host(site: $0, isWatched: true) } + [Host(site: unlisted, isWatched: false)]
    first = try scene.registry.document.bytes
    refreshed = scene.registry.time.seconds
  }

  /// Gets ready: names the first keys, and publishes a second list, so that there is an older one.
  func begin() async {
    for host in hosts { name((try? host.site.server.identity.pin.base64) ?? "", "key 1") }
    do {
      let spare = try scene.stage.issue("bank.localhost")
      name(try spare.pin.base64, "key 2")
      try await administrator.stage(spare, at: "bank.localhost")
      try await clients.client.refresh()
    } catch { trouble(error) }
    note(.notice, "The registry lists the keys of two hosts, and a spare key of the bank.")
    await carryOut(PlaygroundOrder(.send))
  }

  /// Ends what it started, once the order that is being carried out is done: a session that is over must not be asked.
  func end() async {
    isOver = true
    orders = Array(orders.prefix(1))
    await worker?.value
    clients.end()
    impostor?.stop()
    for host in hosts { host.attacker?.stop() }
  }

  // MARK: - Orders

  /// Puts an order behind those that wait.
  func take(_ order: PlaygroundOrder) {
    guard !isOver, orders.count < Self.patience else { return }
    orders.append(order)
    guard worker == nil else { return }
    worker = Task {
      while let next = orders.first {
        await carryOut(next)
        orders.removeFirst()
      }
      worker = nil
    }
  }

  /// A second passes, unless something is being done.
  func tick() {
    if orders.isEmpty { take(PlaygroundOrder(.second)) }
  }

  private func carryOut(_ order: PlaygroundOrder) async {
    do { try await act(order) } catch { trouble(error) }
    observe(order.cause)
  }

  /// Sends a request over these sessions, to these hosts; by default over both, to all.
  func send(_ kinds: [PlaygroundSession], to host: String?) async {
    for index in hosts.indices where host == nil || hosts[index].site.host == host {
      for kind in kinds { await send(kind, toHostAt: index) }
    }
  }

  private func send(_ kind: PlaygroundSession, toHostAt index: Int) async {
    let (site, attacker) = (hosts[index].site, hosts[index].attacker)
    guard let url = try? site.url() else { return }
    let known = attacker?.requests.count ?? 0
    let bytes = attacker?.plaintextBytes ?? 0
    let result = await clients.get(url, over: kind)
    let stolen = attacker.flatMap { $0.requests.count > known ? $0.requests.last : nil }
    bytesRead[kind, default: 0] += (attacker?.plaintextBytes ?? 0) - bytes
    let story = PlaygroundStory(result, over: kind, to: url, stolen: stolen, clients) {
      keyName($0)
    }
    let fate = story.fate(isForeign: attacker != nil || !hosts[index].isWatched)
    hosts[index].fates[kind] = fate
    counts[kind, default: [:]][fate, default: 0] += 1
    log.add(
      .request, story.title, at: scene.registry.time.seconds, session: kind, host: site.host,
      fate: fate, details: story.details)
  }

  /// The app fetches its list, as it does once an hour and after a mismatch.
  func refresh() async {
    refreshed = scene.registry.time.seconds
    do {
      let isNew = try await clients.client.refresh()
      let number = clients.client.registryStamp.version
      note(
        .notice,
        isNew
          ? "The app fetched a new list: epoch \(number?.epoch ?? 0)."
          : "The app's list is the newest."
      )
    } catch {
      note(
        .notice, "The app kept its list: what it fetched was refused, or nothing came.",
        details: [("Reason", "\(error)")])
    }
  }

  /// Lets time pass, and lets the app fetch its list if an hour has passed.
  func pass(seconds: Int64, step: Int64) async throws {
    if isRegistryUp {
      try await scene.registry.pass(seconds: seconds, step: step)
    } else {
      scene.registry.time.skip(seconds: seconds)
    }
    if scene.registry.time.seconds - refreshed >= Timeline.hour { await refresh() }
  }

  // MARK: - What is told

  func note(
    _ kind: PlaygroundLog.Entry.Kind, _ title: String, host: String? = nil,
    details: [(String, String)] = []
  ) {
    log.add(kind, title, at: scene.registry.time.seconds, host: host, details: details)
  }

  private func trouble(_ error: any Error) {
    note(.trouble, "That did not work.", details: [("Reason", "\(error)")])
  }

  /// Gives a key its name.
  func name(_ pin: String, _ name: String) { if names[pin] == nil { names[pin] = name } }

  /// The name of a key, or the beginning of its pin.
  func keyName(_ pin: String) -> String { names[pin] ?? "\(pin.prefix(8))…" }

  /// Names the next key of a host.
  func nameNext(_ identity: ServerIdentity) throws -> String {
    let number = names.values.filter { $0.hasPrefix("key ") }.compactMap { Int($0.dropFirst(4)) }
    let name = "key \((number.max() ?? 0) + 1)"
    self.name(try identity.pin.base64, name)
    return name
  }

  private func observe(_ cause: String) {
    let published = (try? scene.registry.document.bytes).flatMap { try? JSONValue(parsing: $0) }
    let keys = published?.objectValue?["payload"]?.objectValue?["keys"]?.arrayValue
    var seen: [String: PlaygroundHistory.Host] = [:]
    for index in hosts.indices {
      let host = hosts[index].site.host
      if let keys {
        hosts[index].listed = keys.compactMap(\.objectValue)
          .filter { $0["domainName"]?.stringValue == host }.compactMap { $0["key"]?.stringValue }
      }
      seen[host] = now(at: index)
    }
    history.observe(seen, cause: cause, at: scene.registry.time.seconds)
  }

  private func shown(at index: Int) -> String {
    let host = hosts[index]
    let identity = host.attacker.flatMap { try? $0.identity(for: host.site.host) }
    return (try? (identity ?? host.site.server.identity).pin.base64) ?? ""
  }

  /// Everything that the page shows.
  ///
  /// - Parameter stamp: entries of the log that the page has as they are.
  func state(after stamp: Int) -> JSONObject {
    let registry = scene.registry
    let published = (try? registry.document.number?.epoch).map(JSONValue.integer) ?? .null
    let known = clients.client.registryStamp.version.map { JSONValue.integer($0.epoch) } ?? .null
    let current = orders.first { $0.action != .second }
    return [
      "time": .integer(registry.time.seconds), "stamp": .count(log.stamp),
      "busy": current.map { JSONValue.string($0.cause) } ?? .null,
      "auto": .bool(isSendingByItself), "up": .bool(isRegistryUp), "road": .string(road.rawValue),
      "published": published, "known": known,
      "names": .object(JSONObject(names.map { ($0.key, JSONValue.string($0.value)) })),
      "hosts": .array(hosts.indices.map { JSONValue.object(self.host(at: $0)) }),
      "sessions": .object(
        JSONObject(
          PlaygroundSession.allCases.map { ($0.rawValue, JSONValue.object(sums(of: $0))) })),
      "history": history.json, "log": log.json(after: stamp),
    ]
  }

  private func now(at index: Int) -> PlaygroundHistory.Host {
    PlaygroundHistory.Host(
      listed: hosts[index].listed, shown: shown(at: index),
      isAttacked: hosts[index].attacker != nil, fates: hosts[index].fates)
  }

  private func host(at index: Int) -> JSONObject {
    var object = now(at: index).json
    object["host"] = .string(hosts[index].site.host)
    object["watched"] = .bool(hosts[index].isWatched)
    return object
  }

  private func sums(of kind: PlaygroundSession) -> JSONObject {
    var object = JSONObject()
    for fate in PlaygroundFate.allCases {
      object[fate.rawValue] = .count(counts[kind]?[fate] ?? 0)
    }
    object["bytes"] = .count(bytesRead[kind] ?? 0)
    return object
  }
}
