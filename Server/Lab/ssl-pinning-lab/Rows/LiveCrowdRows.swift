import FaultLab
import RegistryServer
import SslPinning
import SslPinningRules
import TLSTools

/// All endpoints of the real registry server change at once: rotated together, or attacked together.
enum LiveCrowdRows {
  private static let hosts = [
    Environment.host, "bank.localhost", "mail.localhost", "maps.localhost",
  ]

  static let changes: [Row] = [
    .change("registry server: all endpoints rotate at once, announced") { log in
      try await run { scene, sites in
        let person = try scene.registry.administrator
        let late = try await scene.registry.startApp()
        for site in sites {
          let new = try scene.stage.issue(site.host)
          try await person.stage(new, at: site.host)
          try site.rotate(to: new)
        }
        log.changed()
        try await scene.dial(log, [scene.app, late], at: sites, seconds: 120)
        try show(try await person.alerts().isEmpty, "announced keys are held")
      }
      return ChangeOutcome("\(hosts.count) endpoints, staged", log)
    },
    .change("registry server: all endpoints rotate at once, seen from two places") { log in
      try await run(fromTwoPlaces: true) { scene, sites in
        for site in sites { try site.rotate(to: scene.stage.issue(site.host)) }
        log.changed()
        try await scene.heal(log, [scene.app], at: sites, within: LiveRotationRows.bound)
      }
      return ChangeOutcome("\(hosts.count) endpoints, unannounced, published without a person", log)
    },
    .change("registry server: all endpoints rotate at once, seen from one place") { log in
      try await run { scene, sites in
        for site in sites { try site.rotate(to: scene.stage.issue(site.host)) }
        log.changed()
        try await scene.heal(log, [scene.app], at: sites, within: LiveRotationRows.bound)
        let alerts = try await scene.registry.administrator.alerts()
        try show(alerts == ["mass-change"], "alerts: \(alerts)")
      }
      return ChangeOutcome(
        "\(hosts.count) endpoints, unannounced, as a cron job renews them: one alert, and nobody has to act",
        log)
    },
  ]

  static let attacks: [Row] = [
    .attack("registry server: man in the middle of everything, mass changes held") {
      var outcome: AttackOutcome?
      try await run(massChange: .hold) { scene, sites in
        let attackers = try intercept(scene, sites)
        // For an hour: the server forgets a change before that.
        try await scene.registry.pass(seconds: 60)
        try await scene.registry.pass(seconds: 3600, step: 60)
        var exhibits: [AttackTrial] = []
        for (site, attacker) in zip(sites, attackers) {
          let other = LiveScene(
            stage: scene.stage, site: site, registry: scene.registry, app: scene.app)
          try await other.mustHold(attacker, "sudden-change")
          exhibits += try await other.useKey(of: attacker)
        }
        outcome = try AttackOutcome(
          "between the server and all \(sites.count) endpoints for an hour, by the trusted CA: held for"
            + " a person", exhibits)
      }
      guard let outcome else { throw Inconclusive("nothing was attacked") }
      return outcome
    },
    .attack("registry server: man in the middle of everything") {
      var outcome: AttackOutcome?
      try await run { scene, sites in
        let registry = scene.registry
        let attackers = try intercept(scene, sites)
        // The attacker has the app's wire, too, and leaves after a minute.
        var seconds = try await scene.secondsAccepted(of: attackers[0], during: 60)
        let alerts = try await registry.administrator.alerts()
        try show(alerts == ["mass-change"], "alerts: \(alerts)")
        for site in sites { registry.lead(site.host, to: site.server.port) }
        let left = registry.time.seconds
        while try registry.lists(scene.key(of: attackers[0])) {
          try show(registry.time.seconds - left <= withdrawal, "his key is still listed")
          seconds += try await scene.secondsAccepted(of: attackers[0], during: 1)
        }
        let withdrawn = registry.time.seconds - left
        try show(
          try await registry.administrator.alerts().contains("key-withdrawn"), "nobody is told")
        // The app refreshes once an hour.
        try await registry.pass(seconds: 3600, step: 60)
        var exhibits: [AttackTrial] = []
        for (site, attacker) in zip(sites, attackers) {
          let other = LiveScene(stage: scene.stage, site: site, registry: registry, app: scene.app)
          exhibits += try await other.useKey(of: attacker)
        }
        outcome = try AttackOutcome(
          "between the server and all \(sites.count) endpoints for a minute, by the trusted CA: one alert at"
            + " once; accepted for \(seconds) s, withdrawn \(withdrawn) s after he left, and refused from the"
            + " app's next hourly fetch on", exhibits)
      }
      guard let outcome else { throw Inconclusive("nothing was attacked") }
      return outcome
    },
  ]

  /// Within how many seconds a key that was there for a minute is withdrawn: a round of probes until it is found
  /// gone, then ten minutes and thirty probes.
  private static let withdrawal: Int64 = 720

  /// Puts a man in the middle between the server and each site, with certificates from the trusted CA.
  private static func intercept(
    _ scene: LiveScene, _ sites: [Site]
  ) throws -> [InterceptingProxy] {
    try sites.map { site in
      let attacker = try InterceptingProxy.transparent(
        upstream: .loopback(site.server.port), authority: scene.stage.authority)
      scene.registry.lead(site.host, to: attacker.port)
      return attacker
    }
  }

  private static func run(
    fromTwoPlaces: Bool = false, massChange: MassChangeMode = .alert,
    _ body: (LiveScene, [Site]) async throws -> Void
  ) async throws {
    let stage = try Environment()
    let sites = try hosts.map { try stage.site($0) }
    let ports = Dictionary(uniqueKeysWithValues: sites.map { ($0.host, $0.server.port) })
    let vantage = try InterceptingProxy.tunnelling { host, _ in ports[host].map(Endpoint.loopback) }
    try await LiveScene.run(
      on: stage, sites: sites, vantagePoints: fromTwoPlaces ? [vantage] : [], massChange: massChange
    ) { try await body($0, sites) }
  }
}
