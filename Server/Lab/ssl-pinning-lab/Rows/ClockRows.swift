import Foundation
import SslPinning
import SslPinningRules
import TLSTools

/// Devices with wrong clocks, and signers whose keys were stolen or whose counters were burnt.
enum ClockRows {
  static let all: [Row] = [
    .change("clock −30 h") { log in
      let stage = try Environment()
      stage.timeline.setDeviceWrong(by: -30 * Timeline.hour)
      let site = try stage.site()
      try stage.registry.publish { try $0.list(site.host, site.server.identity) }
      let app = try await stage.start()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      // By the device's clock the new certificate begins in 30 hours; the app has not refreshed since.
      let new = try stage.issue(site.host, from: 0)
      try stage.registry.publish { try $0.list(site.host, site.server.identity, new) }
      try site.rotate(to: new)
      log.changed()
      try await stage.mustNotBeValidYet(site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: site.body)
      return ChangeOutcome("a certificate that is not valid yet by the device's clock", log)
    },
    .change("clock +25 h") { log in
      let stage = try Environment()
      let site = try Site(Environment.host, stage.issue(Environment.host, to: 10))
      let key = try SigningKey.generate(bits: 2048)
      let end = stage.timeline.world + 60
      let document = try stage.registry.publish {
        try $0.list(site.host, site.server.identity, expires: end)
        $0.format1Key = key
        $0.hasStatement = false
      }
      stage.registry.serve(document)
      let old = try await stage.start {
        $0.rootKeys = []
        $0.rootThreshold = nil
        $0.signingKeyBase64 = key.publicKeyPEM
        $0.storage = .none
      }
      try stage.registry.publish { $0.hasStatement = true }
      let new = try await stage.start { $0.storage = .none }
      await log.get(try site.url(), old.dialers + new.dialers, expecting: site.body)
      stage.timeline.setDeviceWrong(by: 25 * Timeline.hour)
      site.lead()
      log.changed()
      await log.get(try site.url(), old.dialers + new.dialers, expecting: site.body)
      return ChangeOutcome(
        "a pin that the device takes for 25 h too old, under format 1 and under a statement", log)
    },
    .change("clock −400 days") { log in
      let scene = try await Scenario()
      let (site, stage) = (scene.site, scene.stage)
      let bundled = Data(try stage.registry.book.bytes())
      stage.timeline.pass(days: 1)
      stage.timeline.setDeviceWrong(by: -400 * Timeline.day)
      site.lead()
      log.changed()
      try await stage.mustNotBeValidYet(site)
      let stored = try await stage.start()
      let fresh = try await stage.start {
        $0.storage = .none
        $0.bundledRegistry = bundled
      }
      await log.get(
        try site.url(), scene.app.dialers + stored.dialers + fresh.dialers, expecting: site.body)
      return ChangeOutcome(
        "certificates 30 days old; running, from storage, and from a registry in the app", log)
    },
    .change("clock ahead for a while") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let dialer = app.dialers.first
      for years: Int64 in [1, 30] {
        stage.timeline.setDeviceWrong(by: years * 400 * Timeline.day)
        site.lead()
        // By such a clock all certificates have expired: no request can be served.
        if case .served? = try await dialer?.dial(site.url()) {
          throw Inconclusive("served by an expired certificate")
        }
        _ = try? await app.client.refresh()
        _ = try? await stage.start()
      }
      stage.timeline.setDeviceWrong(by: 0)
      site.lead()
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: site.body)
      let new = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, new) }
      try site.rotate(to: new)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      return ChangeOutcome("once it is right again everything goes on, and so do rotations", log)
    },
    .change("burnt counter") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      try stage.registry.publish { $0.version = (1 << 53) - 1 }
      try await stage.hour(log, app, at: site)
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host)
      try stage.registry.beginEpoch(online: .generate(.ed25519))
      try stage.registry.publish { try $0.list(site.host, new) }
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: site.body)
      return ChangeOutcome("the last version there is; a new epoch begins at 1 again", log)
    },
    .change("root key replaced") { log in
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let root = try TrustSigningKey.generate(.p256)
      try stage.registry.beginEpoch(online: .generate(.ed25519), root: root)
      let new = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, new) }
      try site.rotate(to: new)
      log.changed()
      let later = try await stage.start { $0.rootKeys = [root.publicKeyPEM] }
      await log.get(try site.url(), app.dialers + later.dialers, expecting: site.body)
      try stage.registry.beginEpoch(online: .generate(.p256))
      let newer = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, newer) }
      try site.rotate(to: newer)
      await log.get(try site.url(), app.dialers + later.dialers, expecting: site.body)
      return ChangeOutcome("an app that ships the old root and one that ships the new", log)
    },
    .change("format 1 becomes format 2") { log in
      let key = try SigningKey.generate(bits: 2048)
      let stage = try Environment()
      let site = try stage.site()
      try stage.registry.publish {
        try $0.list(site.host, site.server.identity)
        $0.format1Key = key
        $0.hasStatement = false
      }
      let app = try await stage.start {
        $0.rootKeys = []
        $0.rootThreshold = nil
        $0.signingKeyBase64 = key.publicKeyPEM
      }
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host)
      try stage.registry.publish {
        try $0.list(site.host, site.server.identity, new)
        $0.online = [key.trustKey]
        $0.hasStatement = true
      }
      try await stage.hour(log, app, at: site)
      try show(app.client.registryStamp.version != nil, "the statement is not believed")
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      return ChangeOutcome("the shipped key begins to sign statements", log)
    },
  ]
}
