import FaultLab
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What operators do with the real registry server, its endpoints and its keys.
enum LiveRegistryRows {
  static let all: [Row] = [
    .change("registry server: new CA seen from two places") { log in
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.otherRoot())
      let vantage = try InterceptingProxy.tunnelling { _, _ in .loopback(site.server.port) }
      try await LiveScene.run(
        on: stage, sites: [site], believing: [other], vantagePoints: [vantage]
      ) { scene in
        try await scene.get(log)
        try site.rotate(to: stage.issue(site.host, by: other, from: -1))
        log.changed()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
        try show(vantage.tunnels.last?.host == site.host, "nobody probed through the proxy")
      }
      return ChangeOutcome("unannounced, published without a person", log)
    },
    .change("registry server: new CA seen from one place") { log in
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.otherRoot())
      try await LiveScene.run(on: stage, sites: [site], believing: [other]) { scene in
        let registry = scene.registry
        let new = try stage.issue(site.host, by: other, from: -1)
        try await scene.get(log)
        try site.rotate(to: new)
        log.changed()
        let start = registry.time.seconds
        // A person hears of it at once, and comes after two minutes.
        let wasServed = try await scene.attempt(log, seconds: 120)
        try show(!wasServed, "the key was listed already")
        try registry.mustList(new, false)
        let person = try registry.administrator
        let pending = try await person.pending(site.host)
        try show(pending == [try new.pin.base64: ["new-issuer"]], "pending: \(pending)")
        try show(try await person.alerts() == ["key-held"], "nobody is told")
        try await person.approve(new, at: site.host)
        // As long as the client's pause between two fetches.
        try await scene.heal(log, [scene.app], within: 130, since: start)
        try show(try await person.alerts().isEmpty, "the alert stays")
      }
      return ChangeOutcome("unannounced, held, and approved by a person: from then on", log)
    },
    .change("registry server: new CA announced") { log in
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.otherRoot())
      try await LiveScene.run(on: stage, sites: [site], believing: [other]) { scene in
        let late = try await scene.registry.startApp { $0.trust = stage.trust([other]) }
        let new = try stage.issue(site.host, by: other, from: -1)
        try await scene.announce(new)
        try await scene.hour(log)
        try site.rotate(to: new)
        log.changed()
        try await scene.get(log, scene.app, late)
        // From now on its issuer is known.
        try await scene.dial(log, [scene.app, late], seconds: 120)
        try site.rotate(to: stage.issue(site.host, by: other, from: -1))
        log.changed()
        try await scene.heal(log, [scene.app, late], within: LiveRotationRows.bound)
      }
      return ChangeOutcome("staged, seen from one place; its next key is published by itself", log)
    },
    .change("registry server: endpoint added while apps run") { log in
      try await LiveScene.run { scene in
        let registry = scene.registry
        let added = try scene.stage.site("bank.localhost")
        registry.lead(added.host, to: added.server.port)
        let late = try await registry.startApp()
        try await scene.get(log, scene.app, late)
        try await registry.administrator.add(added.host)
        try await registry.pass(seconds: 1)
        try await scene.hour(log)
        log.changed()
        // The late app refreshes when it meets an unknown host.
        for app in [scene.app, late] {
          await log.get(try added.url(), app.dialers, expecting: added.body)
          try await scene.get(log, app)
        }
        let new = try scene.stage.issue(added.host)
        try await registry.administrator.stage(new, at: added.host)
        try added.rotate(to: new)
        log.changed()
        await log.get(try added.url(), scene.app.dialers, expecting: added.body)
      }
      return ChangeOutcome("one probe, then listed; it rotates like the others", log)
    },
    .change("registry server: endpoint removed") { log in
      let stage = try Environment()
      let (site, gone) = (try stage.site(), try stage.site("bank.localhost"))
      try await LiveScene.run(on: stage, sites: [site, gone]) { scene in
        let registry = scene.registry
        let open = try await registry.startApp { $0.unlistedHosts = .systemTrust }
        await log.get(try gone.url(), open.dialers, expecting: gone.body)
        try await registry.administrator.remove(gone.host)
        try await scene.hour(log, [scene.app, open])
        // From now on the server neither watches it nor cares about its key.
        try gone.rotate(to: stage.issue(gone.host))
        log.changed()
        await log.get(try gone.url(), open.dialers, expecting: gone.body)
        try await scene.get(log, scene.app, open)
        for dialer in scene.app.dialers {
          guard case .refused(rule: "unlisted-host", _) = await dialer.dial(try gone.url()) else {
            throw Inconclusive("the removed host is not unlisted")
          }
        }
      }
      return ChangeOutcome(
        "clients forget it: by system trust where the app chose that, refused where not", log)
    },
    .change("registry server: probes paused after a rotation") { log in
      let stage = try Environment()
      // The other endpoint is still probed.
      let (site, other) = (try stage.site(), try stage.site("bank.localhost"))
      try await LiveScene.run(on: stage, sites: [site, other]) { scene in
        let registry = scene.registry
        let old = site.server.identity
        try await rotate(scene, log)
        try await registry.administrator.pause(true, site.host)
        try await registry.pass(days: 10, hours: 12)
        try await registry.administrator.pause(false, site.host)
        try await registry.pass(seconds: 1)
        // Ten days without probes do not count as missing the old key.
        try await scene.app.client.refresh()
        try site.rotate(to: old)
        log.changed()
        try await scene.get(log, scene.app, registry.startApp())
      }
      return ChangeOutcome("nobody looks for 10 days, then the endpoint is rolled back", log)
    },
    .change("registry server: online key rotated") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let asleep = try await registry.startApp()
        for epoch in 2...3 {
          try await registry.keys.rotate(by: ["root1"])
          try await registry.reload()
          try registry.mustBeOfEpoch(Int64(epoch))
          try registry.keys.discardOnlineKey(epoch: epoch - 1)
          try await registry.reload()
          log.changed()
          try await scene.get(log)
          try await rotate(scene, log)
          try show(
            scene.app.client.registryStamp.version?.epoch == Int64(epoch), "not under set \(epoch)")
        }
        // Two key sets and two rotations later.
        await log.get(try site.url(), asleep.dialers, expecting: site.body)
        try show(asleep.client.registryStamp.version?.epoch == 3, "the chain was not walked")
      }
      return ChangeOutcome("twice, by keys rotate and SIGHUP; one app slept through it", log)
    },
    .change("registry server: root key rotated offline") { log in
      try await LiveScene.run { scene in
        let registry = scene.registry
        let asleep = try await registry.startApp()
        try await registry.keys.generateRoot("root2")
        // The root keys are in different places: the new one signs first, and the server waits for the old one.
        try await registry.keys.rotate(by: ["root2"], to: "root2")
        try await registry.reload()
        try registry.mustBeOfEpoch(1)
        try await scene.get(log)
        try await rotate(scene, log)
        try await registry.keys.sign(with: "root1")
        try await registry.reload()
        try registry.mustBeOfEpoch(2)
        try await rotate(scene, log)
        // From now on the shipped root key is no longer needed.
        try await registry.keys.rotate(by: ["root2"])
        try await registry.reload()
        try registry.mustBeOfEpoch(3)
        try await rotate(scene, log)
        for app in [scene.app, asleep] {
          try await scene.get(log, app)
          try show(app.client.registryStamp.version?.epoch == 3, "the chain was not walked")
        }
      }
      return ChangeOutcome(
        "by keys sign-set, old and new root apart; then a set that the new one signs alone", log)
    },
  ]

  /// An announced rotation, to show that apps accept what is published now. The app refreshes only when it meets
  /// the new key, like one that slept through the announcement.
  static func rotate(_ scene: LiveScene, _ log: ChangeLog) async throws {
    let new = try scene.stage.issue(scene.site.host)
    try await scene.announce(new)
    try await scene.get(log)
    try scene.site.rotate(to: new)
    log.changed()
    try await scene.dial(log, seconds: 60)
  }
}
