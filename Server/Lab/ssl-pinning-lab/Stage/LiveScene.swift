import CanonicalJSON
import FaultLab
import Foundation
import RegistryServer
import SslPinning
import SslPinningRules
import TLSTools

/// Sites that the real registry server watches, and an app that is served there.
struct LiveScene: Sendable {
  let stage: Environment
  let site: Site
  let registry: LiveRegistry
  let app: App

  /// - Parameters:
  ///   - sites: the watched sites; the first is the scene's own.
  ///   - believing: CAs that the server and the app trust besides the stage's.
  ///   - vantagePoints: proxies in clear text through which the server also probes.
  ///   - watching: other vantage points.
  ///   - massChange: what it does if most sites change at once.
  ///   - isCopying: whether the server copies the document to `publish.dir`.
  ///   - clockWrongBy: seconds by which its clock is wrong from its first start on.
  static func run(
    on stage: Environment, sites: [Site], believing authorities: [CertificateAuthority] = [],
    vantagePoints: [InterceptingProxy] = [], watching others: [VantagePoint] = [],
    massChange: MassChangeMode = .alert, isCopying: Bool = false, clockWrongBy: Int64 = 0,
    _ body: (LiveScene) async throws -> Void
  ) async throws {
    guard let site = sites.first else { throw Inconclusive("nothing is watched") }
    let points = vantagePoints.enumerated().map {
      VantagePoint(name: "vantage\($0)", host: "127.0.0.1", port: $1.port)
    }
    try await LiveRegistry.run(
      stage, watching: sites, believing: authorities, vantagePoints: points + others,
      massChange: massChange, isCopying: isCopying, clockWrongBy: clockWrongBy
    ) { registry in
      let app = try await registry.startApp { $0.trust = stage.trust(authorities) }
      for site in sites { try await app.mustBeServed(by: site) }
      try await body(LiveScene(stage: stage, site: site, registry: registry, app: app))
    }
    withExtendedLifetime(vantagePoints) {}
  }

  /// Runs a scene on a new stage with one site.
  static func run(_ body: (LiveScene) async throws -> Void) async throws {
    let stage = try Environment()
    try await run(on: stage, sites: [stage.site()], body)
  }

  /// Announces a key for the site.
  func announce(
    _ identity: ServerIdentity, as announcement: LiveAdministrator.Announcement = .certificate
  ) async throws {
    try await registry.administrator.stage(identity, at: site.host, as: announcement)
    try registry.mustList(identity)
  }

  /// Sends a request to the site with every dialer of these apps.
  func get(_ log: ChangeLog, _ apps: App...) async throws {
    let apps = apps.isEmpty ? [app] : apps
    for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
  }

  /// Has these apps send a request in each of so many seconds.
  ///
  /// - Parameters:
  ///   - sites: where they must be served; `nil`: at the scene's own site.
  ///   - step: after how many seconds each sends the next one.
  func dial(
    _ log: ChangeLog, _ apps: [App]? = nil, at sites: [Site]? = nil, seconds: Int64, step: Int64 = 1
  ) async throws {
    for _ in 0..<(seconds / step) {
      for site in sites ?? [site] {
        for app in apps ?? [app] {
          await log.get(try site.url(), app.dialers, expecting: site.body)
        }
      }
      try await registry.pass(seconds: step, step: step)
      log.nextSecond()
    }
  }

  /// Lets an hour pass, in which these apps send requests every minute, and at whose end each refreshes: that often it does so
  /// by itself.
  ///
  /// - Parameter log: `nil`: nobody sends anything.
  func hour(_ log: ChangeLog? = nil, _ apps: [App]? = nil) async throws {
    let apps = apps ?? [app]
    if let log {
      try await dial(log, apps, seconds: Timeline.hour, step: 60)
    } else {
      try await registry.pass(seconds: Timeline.hour, step: 60)
    }
    for app in apps { try await app.client.refresh() }
  }

  /// Has the app send a request in each of so many seconds, each of which may be refused.
  ///
  /// - Returns: whether one was served.
  @discardableResult
  func attempt(_ log: ChangeLog, seconds: Int64) async throws -> Bool {
    var isServed = false
    for _ in 0..<seconds {
      for dialer in app.dialers
      where await log.attempt(try site.url(), dialer, expecting: site.body) {
        isServed = true
      }
      try await registry.pass(seconds: 1)
      log.nextSecond()
    }
    return isServed
  }

  /// Lets time pass, second by second, until every app is served, and notes how long that took. Each app
  /// tries again every second.
  ///
  /// - Parameters:
  ///   - sites: where apps must be served; `nil`: at the scene's own site. Each site has its own probes, so
  ///     one heals before another.
  ///   - start: when the change happened, by the registry's time; `nil`: now.
  func heal(
    _ log: ChangeLog, _ apps: [App], at sites: [Site]? = nil, within bound: Int64,
    since start: Int64? = nil
  ) async throws {
    let (start, sites) = (start ?? registry.time.seconds, sites ?? [site])
    var waiting = sites.flatMap { site in apps.flatMap(\.dialers).map { (site, $0) } }
    while true {
      var refused: [(Site, Dialer)] = []
      for (site, dialer) in waiting
      where try await !log.attempt(site.url(), dialer, expecting: site.body) {
        refused.append((site, dialer))
      }
      waiting = refused
      if waiting.isEmpty || registry.time.seconds - start > bound { break }
      try await registry.pass(seconds: 1)
      log.nextSecond()
    }
    log.healed(after: Double(registry.time.seconds - start), bound: Double(bound))
    for site in sites {
      for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
    }
  }
}

extension Environment {
  /// Trust in these CAs and the stage's.
  func trust(_ others: [CertificateAuthority]) -> TrustMode {
    .anchors(([authority] + others).map(\.root.der))
  }

  /// Another root, which is not trusted by default.
  func otherRoot(_ name: String = "Other root") throws -> CertificateAuthority {
    try .makeRoot(name: name, validity: Self.validity(timeline.world, from: -10, to: 3650))
  }
}

extension LiveScene {
  /// A man in the middle with certificates from the trusted CA.
  func middleman() throws -> InterceptingProxy {
    try .transparent(upstream: .loopback(site.server.port), authority: stage.authority)
  }

  /// Points the app's wire to the attacker and shows that the attack fails, and that the site is served again
  /// afterwards.
  func attack(
    by attacker: some Attacker, at port: UInt16,
    _ refusal: AttackTrial.Refusal = .inHandshake("leaf-pin")
  ) async throws -> [AttackTrial] {
    site.lead(to: port)
    let exhibit = try await AttackTrial(
      site.url(), attacker: attacker, control: stage.control, pinned: app.dialers, refusal)
    site.lead()
    return [exhibit]
  }

  /// Puts the attacker between the server and the site for so many seconds.
  func intercept(by attacker: InterceptingProxy, seconds: Int64) async throws {
    let seen = attacker.handshakesCompleted
    registry.lead(site.host, to: attacker.port)
    try await registry.pass(seconds: seconds)
    try show(attacker.handshakesCompleted > seen + 1, "the server never probed the attacker")
  }

  /// Checks that the key shown to the server is held for this reason, with an alert.
  func mustHold(_ attacker: InterceptingProxy, _ expected: String...) async throws {
    let (pin, person) = (try key(of: attacker).pin.base64, try registry.administrator)
    let reasons = try await person.pending(site.host)
    try show(reasons[pin] == expected, "held: \(reasons)")
    try show(try await person.alerts().contains("key-held"), "nobody is told")
  }

  /// Points the app's wire to the attacker for so many seconds, and counts those in which a request was accepted.
  func secondsAccepted(of attacker: InterceptingProxy, during seconds: Int64) async throws -> Int {
    site.lead(to: attacker.port)
    defer { site.lead() }
    guard let dialer = app.dialers.first else { throw Inconclusive("the app dials nothing") }
    var accepted = 0
    for _ in 0..<seconds {
      if case .served = await dialer.dial(try site.url()) { accepted += 1 }
      try await registry.pass(seconds: 1)
    }
    return accepted
  }

  /// Attacks the app with the key that the server was shown, in a certificate that the app accepts.
  func useKey(of attacker: InterceptingProxy) async throws -> [AttackTrial] {
    let identity = try key(of: attacker)
    try registry.mustList(identity, false)
    try registry.mustList(site.server.identity)
    try await app.client.refresh()
    let thief = try LocalTLSServer(identity: stage.issue(site.host, key: identity.key)) { _ in
      .text("read")
    }
    let exhibits = try await attack(by: thief, at: thief.port)
    try await app.mustBeServed(by: site)
    return exhibits
  }

  /// The identity that an attacker shows.
  func key(of attacker: InterceptingProxy) throws -> ServerIdentity {
    guard let identity = try attacker.identity(for: site.host) else {
      throw Inconclusive("the attacker has no certificate")
    }
    return identity
  }

  /// A document far ahead of the published one that lists a key for the site, signed with a stolen key.
  func forgery(
    listing identity: ServerIdentity, by thief: TrustSigningKey, epoch: Int64,
    issuedIn seconds: Int64 = 0
  ) throws -> [UInt8] {
    let published = try JSONValue(parsing: registry.document.bytes).objectValue
    let now = registry.time.now()
    return try RegistryDocument(
      registry: LiveRegistry.file,
      keys: [
        RegistryKey(
          pattern: try HostPattern(site.host), pin: .success(try identity.pin), expires: nil)
      ],
      terms: .init(
        number: .init(epoch: epoch, version: now + 1_000_000), issued: now + seconds,
        expires: now + seconds + 90 * Timeline.day),
      keySets: published?["keySets"]?.arrayValue ?? []
    ).bytes(format1Key: nil, onlineKeys: [thief])
  }
}
