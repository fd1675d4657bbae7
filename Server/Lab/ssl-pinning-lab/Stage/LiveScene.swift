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
  ///   - sites: those that are watched; the first is the scene's own.
  ///   - believing: CAs that the server and the app believe, beside the stage's.
  ///   - vantagePoints: proxies that the server probes through as well.
  ///   - massChange: what it does where most sites change at once.
  static func run(
    on stage: Environment, sites: [Site], believing authorities: [CertificateAuthority] = [],
    vantagePoints: [InterceptingProxy] = [], massChange: MassChangeMode = .alert,
    _ body: (LiveScene) async throws -> Void
  ) async throws {
    guard let site = sites.first else { throw Inconclusive("nothing is watched") }
    try await LiveRegistry.run(
      stage, watching: sites, believing: authorities, vantagePoints: vantagePoints.map(\.port),
      massChange: massChange
    ) { registry in
      let app = try await registry.startApp { $0.trust = stage.trust(authorities) }
      for site in sites { try await app.mustBeServed(by: site) }
      try await body(LiveScene(stage: stage, site: site, registry: registry, app: app))
    }
    withExtendedLifetime(vantagePoints) {}
  }

  /// A stage of its own with one site.
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

  /// Sends a request to the site by every way of these apps.
  func get(_ log: ChangeLog, _ apps: App...) async throws {
    let apps = apps.isEmpty ? [app] : apps
    for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
  }

  /// Lets time go by, second by second, until every app is served, and notes how long that took. Each app
  /// tries again every second.
  ///
  /// - Parameter sites: where it is to be served; `nil` is the scene's own site. Each has its own probes:
  ///   one is healed before another.
  func heal(
    _ log: ChangeLog, _ apps: [App], at sites: [Site]? = nil, within bound: Int64
  ) async throws {
    let (start, sites) = (registry.time.seconds, sites ?? [site])
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
    }
    log.healed(after: Double(registry.time.seconds - start), bound: Double(bound))
    for site in sites {
      for app in apps { await log.get(try site.url(), app.dialers, expecting: site.body) }
    }
  }
}

extension Environment {
  /// Trust in these CAs beside the stage's.
  func trust(_ others: [CertificateAuthority]) -> TrustMode {
    .anchors(([authority] + others).map(\.root.der))
  }

  /// Another root, which nobody believes unless told to.
  func otherRoot(_ name: String = "Other root") throws -> CertificateAuthority {
    try .makeRoot(name: name, validity: Self.validity(timeline.world, from: -10, to: 3650))
  }
}
