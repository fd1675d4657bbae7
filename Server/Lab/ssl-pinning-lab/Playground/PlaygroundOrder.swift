import CanonicalJSON
import FaultLab
import Foundation
import HTTPServing
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a button of the playground does.
struct PlaygroundOrder: Sendable {
  enum Action: String, Sendable {
    case send, announce, rotate, attack, leave, deny
    case rollBack = "roll-back"
    case steal, recover, restore, stop, start, refresh
    case second, minute, hour, day
    case auto
  }

  let action: Action
  private(set) var host: String?
  private(set) var session: PlaygroundSession?

  init(_ action: Action) { self.action = action }

  /// Reads `{"action": …, "host": …, "session": …}`; `nil` if it is none.
  init?(_ body: [UInt8]) {
    guard let object = try? JSONValue(parsing: body).objectValue,
      let action = object["action"]?.stringValue.flatMap(Action.init), action != .second
    else { return nil }
    self.action = action
    host = object["host"]?.stringValue
    session = object["session"]?.stringValue.flatMap(PlaygroundSession.init)
    let needsHost: Set<Action> = [.announce, .rotate, .attack, .leave, .deny]
    if needsHost.contains(action), host == nil { return nil }
  }

  /// In the words of the picture.
  var cause: String {
    let words =
      switch action {
      case .send: "requests were sent"
      case .announce: "a key was announced, and used"
      case .rotate: "a key was changed, unannounced"
      case .attack: "a man in the middle came"
      case .leave: "the man in the middle left"
      case .deny: "a key was denied"
      case .rollBack: "an old list was played back"
      case .steal: "the online key was stolen"
      case .recover: "the online key was replaced"
      case .restore: "the registry was reached again"
      case .stop: "the registry stopped"
      case .start: "the registry started"
      case .refresh: "the app fetched its list"
      case .second, .minute, .hour, .day: "time passed"
      case .auto: "requests by themselves were switched"
      }
    return host.map { "\($0): \(words)" } ?? words
  }
}

extension Playground {
  /// Carries an order out.
  func act(_ order: PlaygroundOrder) async throws {
    switch order.action {
    case .send: await send(order.session.map { [$0] } ?? PlaygroundSession.allCases, to: order.host)
    case .announce: try await announce(at: try index(order))
    case .rotate: try rotate(at: try index(order))
    case .attack: try attack(at: try index(order))
    case .leave: leave(at: try index(order))
    case .deny: try await deny(at: try index(order))
    case .rollBack: try await rollBack()
    case .steal: try await steal()
    case .recover: try await recover()
    case .restore: try await restore()
    case .stop: try await stop()
    case .start: try await start()
    case .refresh: await refresh()
    case .second:
      try await pass(seconds: 1, step: 1)
      if isSendingByItself { await send(PlaygroundSession.allCases, to: nil) }
    case .minute: try await turn("A minute", 60, step: 1)
    case .hour: try await turn("An hour", 3600, step: 300)
    case .day: try await turn("A day", 86_400, step: 3600)
    case .auto:
      isSendingByItself.toggle()
      note(.action, "Requests by themselves: \(isSendingByItself ? "on" : "off").")
    }
  }

  private func index(_ order: PlaygroundOrder) throws(Inconclusive) -> Int {
    guard let index = hosts.firstIndex(where: { $0.site.host == order.host }) else {
      throw Inconclusive("no such host")
    }
    return index
  }

  private func turn(_ what: String, _ seconds: Int64, step: Int64) async throws {
    note(.action, "\(what) passes.")
    try await pass(seconds: seconds, step: step)
  }

  /// An administrator who reaches the registry server itself: whoever is on the app's way to it is not on his.
  var administrator: LiveAdministrator {
    get throws {
      let registry = scene.registry
      guard let port = try registry.leader.address?.port else {
        throw Inconclusive("the registry does not listen")
      }
      return LiveAdministrator(
        server: "http://127.0.0.1:\(port)", token: try registry.administrator.token)
    }
  }

  // MARK: - A host

  private func announce(at index: Int) async throws {
    let site = hosts[index].site
    let new = try scene.stage.issue(site.host)
    try await administrator.stage(new, at: site.host)
    let name = try nameNext(new)
    note(.action, "\(name) of \(site.host) was announced: the list has it beside the others.")
    try site.rotate(to: new)
    note(.action, "\(site.host) shows \(name) from now on.")
  }

  private func rotate(at index: Int) throws {
    let site = hosts[index].site
    let new = try scene.stage.issue(site.host, from: 0)
    let name = try nameNext(new)
    try site.rotate(to: new)
    note(
      .action,
      "\(site.host) shows \(name), which nobody announced. It is listed once three probes agree:"
        + " within a minute.")
  }

  private func attack(at index: Int) throws {
    let site = hosts[index].site
    guard hosts[index].attacker == nil else { return }
    let attacker = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: scene.stage.authority)
    if let pin = try attacker.identity(for: site.host)?.pin { name(pin.base64, "his own key") }
    hosts[index].attacker = attacker
    site.lead(to: attacker.port)
    note(
      .action,
      "A man in the middle stands before \(site.host), with a certificate of a CA that both sessions"
        + " trust.")
  }

  private func leave(at index: Int) {
    hosts[index].site.lead()
    hosts[index].attacker?.stop()
    hosts[index].attacker = nil
    note(.action, "The man in the middle before \(hosts[index].site.host) is gone.")
  }

  private func deny(at index: Int) async throws {
    let site = hosts[index].site
    let pin = try site.server.identity.pin
    try await administrator.deny(pin)
    note(.action, "\(keyName(pin.base64)) of \(site.host) was denied: nobody accepts it any more.")
    await refresh()
  }

  // MARK: - The registry

  private func stop() async throws {
    guard isRegistryUp else { return }
    try await scene.registry.stopServer()
    impostor?.stop()
    impostor = nil
    (isRegistryUp, road) = (false, .open)
    note(.action, "The registry is down. Lists that devices have are good for 90 days.")
  }

  private func start() async throws {
    guard !isRegistryUp else { return }
    try await scene.registry.startServer()
    (isRegistryUp, road) = (true, .open)
    note(.action, "The registry is up again.")
  }

  private func rollBack() async throws {
    let old = try LocalHTTPServer { [first] _ in FaultLab.HTTPResponse(body: first) }
    try lead(to: old, .rolledBack)
    note(.action, "The network answers with the list of the beginning, which was signed for real.")
    await refresh()
  }

  /// A thief with the online key lists his own key, and stands before the first host.
  private func steal() async throws {
    let registry = scene.registry
    let epoch = try registry.document.number?.epoch ?? 0
    let thief = try registry.keys.onlineKey(epoch: Int(epoch))
    try attack(at: 0)
    guard let identity = try hosts[0].attacker?.identity(for: hosts[0].site.host) else {
      throw Inconclusive("the attacker has no certificate")
    }
    let bytes = try scene.forgery(listing: identity, by: thief, epoch: epoch)
    try lead(to: LocalHTTPServer { _ in FaultLab.HTTPResponse(body: bytes) }, .forged)
    note(
      .action,
      "The online key was stolen. The thief signs a list with his own key for \(hosts[0].site.host),"
        + " and apps that meet it believe it.")
    await refresh()
  }

  private func recover() async throws {
    let registry = scene.registry
    // Before a key is made: a server that is down would not learn of it.
    _ = try registry.leader
    try await registry.keys.rotate(by: ["root1"])
    try await registry.reload()
    try lead(to: nil, .open)
    note(
      .action,
      "The root key, which is kept offline, signed a new online key. What the stolen one signed is"
        + " worth nothing to whoever hears of it.")
    await refresh()
  }

  private func restore() async throws {
    try lead(to: nil, .open)
    note(.action, "The app reaches the registry itself again.")
    await refresh()
  }

  private func lead(to server: LocalHTTPServer?, _ road: Road) throws {
    try scene.registry.leadWire(to: server?.port)
    impostor?.stop()
    impostor = server
    self.road = road
  }
}
