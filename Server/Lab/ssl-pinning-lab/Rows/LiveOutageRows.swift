import RegistryServer
import SslPinning
import SslPinningRules
import TLSTools

/// The real registry server is down, restarted, or replaced by a follower.
enum LiveOutageRows {
  static let all: [Row] = [
    .change("registry server: down 80 days") { log in
      try await LiveScene.run { scene in
        let (registry, stored) = (scene.registry, scene.stage.storage)
        _ = try await registry.startApp { $0.storage = stored }
        let before = try registry.document
        try await registry.stopServer()
        registry.time.skip(seconds: 80 * Timeline.day)
        log.changed()
        let restarted = try await registry.startApp { $0.storage = stored }
        for app in [scene.app, restarted] {
          // A kept connection would need no verdict.
          scene.site.lead()
          try await scene.get(log, app)
          try show(app.client.registryStatus.isStale, "the age is hidden")
        }
        try await registry.startServer()
        let after = try registry.document
        try show(before.isOlder(than: after), "the number did not grow")
        try await scene.hour(log, [scene.app, restarted])
        for app in [scene.app, restarted] {
          try show(!app.client.registryStatus.isStale, "still stale")
          try await scene.get(log, app)
        }
        try await LiveRegistryRows.rotate(scene, log)
      }
      return ChangeOutcome("apps go on with what they have; then it goes on where it was", log)
    },
    .change("registry server: restarted in the middle of a rotation") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        let (old, new) = (site.server.identity, try scene.stage.issue(site.host))
        try await scene.announce(new)
        try await scene.hour(log)
        try await registry.stopServer()
        registry.time.skip(seconds: 4 * Timeline.day)
        try site.rotate(to: new)
        log.changed()
        try await scene.get(log)
        registry.time.skip(seconds: 5 * Timeline.day)
        try await registry.startServer()
        try await scene.dial(log, seconds: 60)
        // Nobody probed for 9 days, so the old key may have been in use.
        try registry.mustList(old)
        try await scene.get(log, scene.app, registry.startApp())
        // An unannounced key, which the server saw too few times before it was stopped.
        try site.rotate(to: scene.stage.issue(site.host))
        log.changed()
        while try await registry.administrator.candidates(at: site.host).isEmpty {
          try await scene.attempt(log, seconds: 1)
        }
        try registry.mustList(site.server.identity, false)
        try await registry.stopServer()
        try await registry.startServer()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
        try await registry.passGrace()
        try registry.mustList(old, false)
        try registry.mustList(new, false)
        try await scene.app.client.refresh()
        try await scene.get(log)
      }
      return ChangeOutcome(
        "9 days after the announcement, and again after one probe an unannounced key", log)
    },
    .change("registry server: another one takes over") { log in
      try await LiveScene.run { scene in
        let (site, registry) = (scene.site, scene.registry)
        try await registry.startServer()
        for _ in 0..<2 {
          let (new, late) = (try scene.stage.issue(site.host), try await registry.startApp())
          try await scene.announce(new)
          // The leader stops before it has published the key.
          try await registry.stopServer()
          try registry.mustList(new)
          try site.rotate(to: new)
          log.changed()
          try await scene.get(log, scene.app, late)
          try await registry.startServer()
        }
        try site.rotate(to: scene.stage.issue(site.host))
        log.changed()
        try await registry.stopServer()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
      }
      return ChangeOutcome(
        "two servers on one store: staged with one and served by the other, twice; then a key that"
          + " nobody announced", log)
    },
    .change("registry server: processes killed in the middle of a rotation") { log in
      let stage = try Environment()
      let site = try stage.site()
      let registry = try await LiveProcesses(stage, watching: site)
      try await registry.start()
      try await registry.lead()
      let app = try await registry.startApp()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try await registry.start()
      // The server's last act is its answer to the announcement.
      for isFollowed in [true, false] {
        let new = try stage.issue(site.host)
        try await registry.administrator().stage(new, at: site.host)
        try await registry.kill()
        if !isFollowed { try await registry.start() }
        try await registry.lead()
        let late = try await registry.startApp()
        try site.rotate(to: new)
        log.changed()
        await log.get(try site.url(), app.dialers + late.dialers, expecting: site.body)
      }
      try await registry.keys.rotate(by: ["root1"])
      registry.hangUp()
      let new = try stage.issue(site.host)
      try await registry.administrator().stage(new, at: site.host)
      while try await registry.startApp().client.registryStamp.version?.epoch != 2 {
        try await Task.sleep(nanoseconds: 20_000_000)
      }
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try show(app.client.registryStamp.version?.epoch == 2, "the app is not under set 2")
      return ChangeOutcome(
        "ssl-pinning up by kill -9, once followed by another and once started again; then keys rotate"
          + " and SIGHUP", log)
    },
  ]
}

extension PublishedDocument {
  fileprivate func isOlder(than other: PublishedDocument) -> Bool {
    guard let number, let next = other.number else { return false }
    return number < next
  }
}
