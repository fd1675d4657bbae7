import Pinning
import SslPinning
import TLSTools

/// All endpoints of the real registry server that change at once: rotated together, or taken together.
enum LiveCrowdRows {
  private static let hosts = [Stage.host, "bank.localhost", "mail.localhost", "maps.localhost"]

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
        for site in sites {
          await log.get(try site.url(), scene.app.dialers + late.dialers, expecting: site.body)
        }
        try await scene.registry.pass(seconds: 120)
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
        let person = try scene.registry.administrator
        for site in sites { try site.rotate(to: scene.stage.issue(site.host)) }
        log.changed()
        try await scene.registry.pass(seconds: 120)
        for site in sites {
          let held = try await person.pending(site.host)
          try show(held.values.allSatisfy { $0 == ["sudden-change"] } && held.count == 1, "\(held)")
          try await person.approve(site.server.identity, at: site.host)
        }
        try await scene.heal(log, [scene.app], at: sites, within: 10)
      }
      return ChangeOutcome(
        "\(hosts.count) endpoints, unannounced, held, and approved by a person: from then on", log)
    },
  ]

  static let attacks: [Row] = [
    .attack("registry server: man in the middle of everything") {
      var outcome: AttackOutcome?
      try await run { scene, sites in
        let attackers = try sites.map { site in
          let attacker = try InterceptingProxy.transparent(
            upstream: .loopback(site.server.port), authority: scene.stage.authority)
          scene.registry.lead(site.host, to: attacker.port)
          return attacker
        }
        // For an hour: what is remembered of a change ends before that.
        try await scene.registry.pass(seconds: 60)
        try await scene.registry.pass(seconds: 3600, step: 60)
        var exhibits: [Exhibit] = []
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
      guard let outcome else { throw Unshown("nothing was attacked") }
      return outcome
    }
  ]

  private static func run(
    fromTwoPlaces: Bool = false, _ body: (LiveScene, [Site]) async throws -> Void
  ) async throws {
    let stage = try Stage()
    let sites = try hosts.map { try stage.site($0) }
    let ports = Dictionary(uniqueKeysWithValues: sites.map { ($0.host, $0.server.port) })
    let vantage = try InterceptingProxy.tunnelling { host, _ in ports[host].map(Endpoint.loopback) }
    try await LiveScene.run(
      on: stage, sites: sites, vantagePoints: fromTwoPlaces ? [vantage] : []
    ) { try await body($0, sites) }
  }
}
