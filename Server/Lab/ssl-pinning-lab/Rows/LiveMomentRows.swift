import FaultLab
import SslPinning
import SslPinningRules
import TLSTools

/// Unannounced keys that the real registry server sees for a moment, or now and then.
enum LiveMomentRows {
  static let changes: [Row] = [
    .change("registry server: a twentieth of all connections meets a new key for half an hour") {
      log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let canary = try Site(site.host, scene.stage.issue(site.host))
        let road = try SwitchableRelay(to: .loopback(site.server.port))
        registry.lead(site.host, to: road.port)
        log.changed()
        var (isListed, since): (Bool, Int64) = (false, 0)
        // At least half an hour; longer if the server's probes happen to miss it.
        for second in 0..<Int64(28_800) {
          if isListed, second >= max(1800, since + 600) { break }
          // Each probe connects anew; the app meets the canary at the same rate.
          let isCanary = second % 20 == 6
          road.redirect(
            to: .loopback(isCanary ? canary.server.port : site.server.port),
            closingConnections: false)
          let listed = try registry.lists(canary.server.identity)
          if listed, !isListed { (isListed, since) = (true, second) }
          if isCanary {
            site.lead(to: canary.server.port)
            // After the bound, an app that meets it must not be refused.
            if isListed, second > since + 10 {
              await log.get(try site.url(), scene.app.dialers, expecting: canary.body)
            } else {
              for dialer in scene.app.dialers {
                _ = await log.attempt(try site.url(), dialer, expecting: canary.body)
              }
            }
            site.lead()
          } else if second % 20 == 7 {
            try await scene.get(log)
          }
          try await registry.pass(seconds: 1)
          log.nextSecond()
        }
        try show(isListed, "the canary was never listed")
        log.healed(after: Double(since), bound: 28_800)
      }
      return ChangeOutcome("listed once it is met often enough, and not withdrawn between", log)
    },
    .change("registry server: a rollout that is taken back, and tried again") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let (blue, green) = (site.server.identity, try scene.stage.issue(site.host))
        for minutes in [5, 30] as [Int64] {
          try site.rotate(to: green)
          log.changed()
          try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
          try await scene.dial(log, seconds: 60 * minutes, step: 5)
          try site.rotate(to: blue)
          // The old key stays listed.
          try await scene.dial(log, seconds: 2400, step: 5)
        }
        try site.rotate(to: green)
        log.changed()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "blue to green and back after 5 and after 30 minutes, and to green for good", log)
    },
    .change("registry server: a balancer that keeps the server at one of two keys for minutes") {
      log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let second = try Site(site.host, scene.stage.issue(site.host))
        log.changed()
        for minutes in [3, 8, 3, 15, 3, 8] as [Int64] {
          registry.lead(site.host, to: second.server.port)
          let both = LiveScene(stage: scene.stage, site: second, registry: registry, app: scene.app)
          try await both.heal(log, [scene.app], within: LiveRotationRows.bound)
          try await both.dial(log, seconds: 60 * minutes, step: 5)
          registry.lead(site.host, to: site.server.port)
          try await scene.dial(log, seconds: 60 * minutes, step: 5)
        }
      }
      return ChangeOutcome(
        "one key for 3 to 15 minutes, then the other: each time within the bound", log)
    },
  ]

  static let attacks: [Row] = [
    .attack("registry server: man in the middle for five seconds") {
      try await LiveAttackRows.live { scene in
        let registry = scene.registry
        let attacker = try scene.middleman()
        registry.lead(scene.site.host, to: attacker.port)
        while attacker.handshakesCompleted == 0 { try await registry.pass(seconds: 1) }
        let accepted = try await scene.secondsAccepted(of: attacker, during: 5)
        registry.lead(scene.site.host, to: scene.site.server.port)
        let alerts = try await registry.administrator.alerts()
        try show(alerts == ["unannounced-key"], "alerts: \(alerts)")
        let left = registry.time.seconds
        while try registry.lists(scene.key(of: attacker)) {
          try show(registry.time.seconds - left <= 720, "his key is still listed")
          try await scene.app.mustBeServed(by: scene.site)
          try await registry.pass(seconds: 1)
        }
        let withdrawn = registry.time.seconds - left
        try await registry.pass(seconds: 3600, step: 60)
        return try AttackOutcome(
          "seen by the server three times: accepted for \(accepted) s while he stood there, told at once, withdrawn"
            + " after \(withdrawn) s", try await scene.useKey(of: attacker))
      }
    }
  ]
}
