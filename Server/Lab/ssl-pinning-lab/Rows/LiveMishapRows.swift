import FaultLab
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Mishaps of the real registry server, and how its operator repairs them.
enum LiveMishapRows {
  static let all: [Row] = [
    .change("registry server: clock 400 days ahead for a while") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        try await scene.get(log)
        registry.setClockWrong(bySeconds: 400 * Timeline.day)
        // An unannounced key, so that something is decided and signed in that time.
        try site.rotate(to: scene.stage.issue(site.host))
        log.changed()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
        try show(try await registry.administrator.alerts().contains("clock"), "nobody is told")
        registry.setClockWrong(bySeconds: 0)
        try await scene.dial(log, seconds: 65)
        try show(try registry.document.signed <= registry.time.now(), "signed in the next year")
        try show(
          try await !registry.administrator.alerts().contains("clock"), "the alert stays")
        try await LiveRegistryRows.rotate(scene, log)
      }
      return ChangeOutcome("it goes on by the time that passed, and tells of the clock", log)
    },
    .change("registry server: clock 400 days ahead from the first start on") { log in
      for isRotated in [false, true] {
        // A certificate that is valid by both clocks: by one that is past its end the server would
        // publish nothing.
        let stage = try Environment()
        let site = try Site(Environment.host, stage.issue(Environment.host, to: 800))
        try await LiveScene.run(
          on: stage, sites: [site], clockWrongBy: 400 * Timeline.day
        ) { scene in
          let registry = scene.registry
          log.changed()
          let next = registry.time.now() + 300 * Timeline.day
          try show(try registry.document.signed > next, "nothing was signed in the next year")
          try await scene.dial(log, [scene.app], seconds: 60)
          registry.setClockWrong(bySeconds: 0, isKept: true)
          if isRotated {
            try await registry.keys.rotate(by: ["root1"])
            try await registry.reload()
          }
          // Ten minutes of the right time, and the next probe.
          try await scene.dial(log, [scene.app], seconds: 725)
          try show(try registry.document.signed <= registry.time.now(), "signed in the next year")
          try await LiveRegistryRows.rotate(scene, log)
        }
      }
      return ChangeOutcome(
        "its statements are of next year until a time daemon keeps the clock; a new epoch or none",
        log)
    },
    .change("registry server: clock set back 400 days") { log in
      try await LiveScene.run { scene in
        let registry = scene.registry
        try await scene.get(log)
        registry.setClockWrong(bySeconds: -400 * Timeline.day)
        try await LiveRegistryRows.rotate(scene, log)
        try scene.site.rotate(to: scene.stage.issue(scene.site.host))
        log.changed()
        try await scene.heal(log, [scene.app, registry.startApp()], within: LiveRotationRows.bound)
        try await registry.stopServer()
        try await registry.startServer()
        try await LiveRegistryRows.rotate(scene, log)
      }
      return ChangeOutcome(
        "it goes on above what clients have seen, restarted as well; announced and not", log)
    },
    .change("registry server: stolen online key healed by keys rotate") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let thief = try registry.keys.onlineKey(epoch: 1)
        // The thief lists his own key for the host.
        let forged = try scene.forgery(
          listing: scene.stage.issue(site.host), by: thief, epoch: 1, issuedIn: 300 * Timeline.day)
        let server = try LocalHTTPServer { _ in HTTPResponse(body: forged) }
        try registry.leadWire(to: server.port)
        try await scene.hour(log)
        log.changed()
        site.lead()
        for dialer in scene.app.dialers {
          try show(
            await !log.attempt(site.url(), dialer, expecting: site.body),
            "the theft locked nobody out")
        }
        try registry.leadWire()
        try await registry.keys.rotate(by: ["root1"])
        try await registry.reload()
        // The client's own pause between two fetches.
        try await scene.heal(log, [scene.app], within: 11)
        try await LiveRegistryRows.rotate(scene, log)
      }
      return ChangeOutcome("locked out by the thief, let in again by the root keys", log)
    },
    .change("registry server: endpoint leaves the configuration") { log in
      let stage = try Environment()
      let (site, lost) = (try stage.site(), try stage.site("bank.localhost"))
      try await LiveScene.run(on: stage, sites: [site, lost]) { scene in
        let registry = scene.registry
        try await registry.reload(watching: [site])
        try await LiveRegistryRows.rotate(scene, log)
        // Its registry has had another key set: an app may ask for the first time since.
        try show(registry.lists(lost.host), "an app that asks after that lets go of it")
        lost.lead()
        await log.get(try lost.url(), scene.app.dialers, expecting: lost.body)
        try await registry.reload(watching: [site, lost])
        try show(registry.lists(lost.host), "it is not listed again")
        try await scene.hour(log)
        try lost.rotate(to: stage.issue(lost.host, key: lost.server.identity.key))
        log.changed()
        await log.get(try lost.url(), scene.app.dialers, expecting: lost.body)
      }
      return ChangeOutcome("a slip in a file: apps keep its last pins, and it comes back", log)
    },
    .change("registry server: store lost") { log in
      let stage = try Environment()
      try await LiveScene.run(on: stage, sites: [stage.site()], isCopying: true) { scene in
        let (site, registry) = (scene.site, scene.registry)
        let old = site.server.identity
        try await LiveRegistryRows.rotate(scene, log)
        try await registry.administrator.deny(old.pin)
        try await registry.stopServer()
        try registry.loseStore()
        log.changed()
        for _ in 0..<5 {
          try await scene.get(log)
          registry.time.skip(seconds: 1)
        }
        try await registry.startServer()
        let apps = [scene.app, try await registry.startApp()]
        try await scene.dial(log, apps, seconds: 65)
        try registry.mustList(old, false)
        try show(try registry.publishes(old.pin.base64), "the denial is lost")
        try show(
          try await registry.administrator.alerts().contains("store-lost"), "nobody is told")
        try await LiveRegistryRows.rotate(scene, log)
        // And one that nobody announced.
        try site.rotate(to: stage.issue(site.host))
        try await scene.heal(log, apps, within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "it goes on by itself from the copy in publish.dir, above what clients have seen, denials included; then"
          + " rotations, announced and not", log)
    },
    .change("registry server: store restored from an old copy") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let old = site.server.identity
        try await registry.stopServer()
        try registry.copyStore()
        try await registry.startServer()
        try await LiveRegistryRows.rotate(scene, log)
        try await registry.passGrace()
        try registry.mustList(old, false)
        try await scene.app.client.refresh()
        try await registry.stopServer()
        try registry.restoreStore()
        log.changed()
        try await registry.startServer()
        // An app that has seen a newer document keeps that.
        site.lead()
        try await scene.get(log)
        let fresh = try await registry.startApp()
        try await scene.heal(log, [scene.app, fresh], within: LiveRotationRows.bound)
        try await scene.hour(log, [scene.app, fresh])
        try await LiveRegistryRows.rotate(scene, log)
      }
      return ChangeOutcome(
        "older than the last rotation: apps that saw more keep it, new ones wait for three probes",
        log)
    },
    .change("registry server: stolen server key replaced") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let late = try await registry.startApp()
        let (stolen, new) = (site.server.identity, try scene.stage.issue(site.host))
        try await scene.announce(new)
        try await scene.hour(log)
        try site.rotate(to: new)
        try await registry.administrator.deny(stolen.pin)
        log.changed()
        try await scene.get(log, scene.app, late)
        try await scene.hour(log)
        try await scene.get(log, scene.app, late)
        try registry.mustList(stolen, false)
      }
      return ChangeOutcome("staged, switched, and the old key denied at once", log)
    },
  ]
}

/// Names that the server's resolver answers, and names that never get an answer.
enum LiveNameRows {
  private static let goodNames = 10
  private static let silentNames = 1000
  /// Fewer than half: more at once would be a mass change, which has its own rows.
  private static let rotated = 4

  static let all: [Row] = [
    .change("registry server: a thousand silent names beside ten good ones") { log in
      let stage = try Environment()
      let sites = try (0..<goodNames).map { try stage.site("good\($0).localhost") }
      var first: Int64 = 0
      try await LiveRegistry.run(stage, watching: sites, silentNames: silentNames) { registry in
        let start = registry.time.seconds
        while !sites.allSatisfy({ registry.lists($0.host) }) {
          try show(
            registry.time.seconds - start <= 70, "every good name is published within 70 s")
          // Each step takes as long as a lookup hangs, and a row has three minutes.
          try await registry.pass(seconds: 5, step: 5)
        }
        first = registry.time.seconds - start
        let app = try await registry.startApp { $0.trust = stage.trust([]) }
        for site in sites { try await app.mustBeServed(by: site) }
        let scene = LiveScene(stage: stage, site: sites[0], registry: registry, app: app)
        for site in sites.prefix(rotated) { try site.rotate(to: stage.issue(site.host)) }
        log.changed()
        try await scene.heal(log, [app], at: sites, within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "all \(goodNames) published after \(first) s, \(rotated) rotated unannounced, beside"
          + " \(silentNames) names whose lookups hang", log)
    }
  ]
}

/// Devices whose clocks are behind, with the real registry server and no manual refresh.
enum LiveClockRows {
  /// How a site gets a certificate that is newer than everything the device knows.
  private enum Renewal: String, CaseIterable {
    case announced, unannounced
    case sameKey = "with the same key"
  }

  static let all: [Row] = Renewal.allCases.map { renewal in
    .change("registry server: clock −30 h, new certificate \(renewal.rawValue)") { log in
      let stage = try Environment()
      let site = try stage.site()
      // Behind the machine's time, by which the server validates chains.
      let time = VirtualTime(behind: 2 * Timeline.hour)
      try await LiveRegistry.run(stage, watching: [site], time: time) { registry in
        let app = try await registry.startApp(clockWrongBy: -30 * Timeline.hour)
        let scene = LiveScene(stage: stage, site: site, registry: registry, app: app)
        try await scene.get(log)
        let key = renewal == .sameKey ? site.server.identity.key : try PrivateKey.generate(.p256)
        func issue() throws -> ServerIdentity {
          try stage.authority.issue(
            names: [site.host], key: key,
            validity: Validity(notBefore: time.now() - 30, notAfter: time.now() + Timeline.day))
        }
        if renewal == .announced { try await scene.announce(issue()) }
        try await scene.dial(log, seconds: 600)
        let new = try issue()
        try site.rotate(to: new)
        log.changed()
        try await stage.mustNotBeValidYet(site, at: time.now() - 30 * Timeline.hour)
        try await scene.heal(log, [app], within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "newer than the device's clock and than all that it was told; the server signs anew", log)
    }
  }
}
