import FaultLab
import SslPinning
import SslPinningRules
import TLSTools

/// Attackers between apps and the real registry server, with documents that it signed, or that were signed
/// with its stolen key.
enum LiveForgeryRows {
  static let all: [Row] = [
    .attack("registry server: rollback") {
      try await LiveAttackRows.live { scene in
        let (site, registry) = (scene.site, scene.registry)
        let stolen = site.server.identity
        let old = try registry.document.bytes
        // An announced rotation; the server has withdrawn the old key.
        let new = try scene.stage.issue(site.host)
        try await scene.announce(new)
        try site.rotate(to: new)
        try await registry.passGrace()
        try await scene.app.client.refresh()
        let replaying = try LocalHTTPServer { _ in HTTPResponse(body: old) }
        try registry.leadWire(to: replaying.port)
        try await scene.app.mustRefuse(\.isRollback)
        let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
        let exhibits = try await scene.attack(by: attacker, at: attacker.port)
        try await scene.app.mustBeServed(by: site)
        // The control: a device that knows nothing yet believes the old document.
        let naive = try await registry.startApp()
        site.lead(to: attacker.port)
        try await naive.mustGet(site.url(), "read")
        return try AttackOutcome(
          "the document of 8 days ago and the key that was withdrawn since; a device that never saw a"
            + " newer one would believe it", exhibits)
      }
    },
    .attack("registry server: freeze") {
      try await LiveAttackRows.live { scene in
        let (site, registry) = (scene.site, scene.registry)
        let stolen = site.server.identity
        let old = try registry.document.bytes
        let frozen = try LocalHTTPServer { _ in HTTPResponse(body: old) }
        // The server goes on and denies the key, but the app never learns that.
        let new = try scene.stage.issue(site.host)
        try await scene.announce(new)
        try await registry.administrator.deny(stolen.pin)
        try site.rotate(to: new)
        try registry.leadWire(to: frozen.port)
        let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
        try await registry.pass(days: 89, hours: 24)
        try await scene.app.client.refresh()
        site.lead(to: attacker.port)
        try await scene.app.mustGet(site.url(), "read")
        try await registry.pass(days: 1, hours: 24)
        let exhibits = try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("expired-registry"))
        try registry.leadWire()
        try await scene.hour()
        try await scene.app.mustBeServed(by: site)
        return try AttackOutcome(
          "held at one document: the stolen key serves until day 90 and never after; let go, the app"
            + " goes on", exhibits)
      }
    },
    .attack("registry server: withdrawn online key") {
      try await LiveAttackRows.live { scene in
        let (site, registry) = (scene.site, scene.registry)
        let attacker = try scene.middleman()
        let identity = try scene.key(of: attacker)
        let thief = try registry.keys.onlineKey(epoch: 1)
        try await registry.keys.rotate(by: ["root1"])
        try await registry.reload()
        try await scene.hour()
        var exhibits: [AttackTrial] = []
        for epoch: Int64 in [1, 2] {
          let bytes = try scene.forgery(listing: identity, by: thief, epoch: epoch)
          let server = try LocalHTTPServer { _ in HTTPResponse(body: bytes) }
          try registry.leadWire(to: server.port)
          try await scene.app.mustRefuse(\.isUnsigned)
          exhibits += try await scene.attack(by: attacker, at: attacker.port)
          try await scene.app.mustBeServed(by: site)
        }
        return try AttackOutcome(
          "the online key of epoch 1 signs once keys rotate has begun epoch 2, for either epoch",
          exhibits)
      }
    },
  ]
}
