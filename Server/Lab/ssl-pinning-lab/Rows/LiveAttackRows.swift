import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Attackers between apps, the real registry server and the endpoints that it watches.
enum LiveAttackRows {
  static let all: [Row] = [
    .attack("registry server: CA-trusted man in the middle during a rotation") {
      try await live { scene in
        let attacker = try scene.middleman()
        var exhibits = try await scene.attack(by: attacker, at: attacker.port)
        let new = try scene.stage.issue(scene.site.host)
        try await scene.announce(new)
        exhibits += try await scene.attack(by: attacker, at: attacker.port)
        try scene.site.rotate(to: new)
        try await scene.registry.pass(seconds: 120)
        exhibits += try await scene.attack(by: attacker, at: attacker.port)
        return try AttackOutcome(
          "in front of an app before, while and after the server publishes another key", exhibits)
      }
    },
    .attack("registry server: denied key that the endpoint still shows") {
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.site("bank.localhost"))
      return try await live(on: stage, sites: [site, other]) { scene in
        let registry = scene.registry
        try await registry.administrator.deny(site.server.identity.pin)
        try registry.mustList(site.server.identity, false)
        try await scene.hour()
        // The key is still shown, but never listed again.
        try await registry.pass(seconds: 240)
        try registry.mustList(site.server.identity, false)
        try show(
          try await registry.administrator.alerts() == ["denied-key-seen"], "nobody is told")
        let exhibits = try await scene.attack(
          by: site.server, at: site.server.port, .inHandshake("denied-key"))
        try await scene.app.mustBeServed(by: other)
        return try AttackOutcome(
          "denied over HTTP; the server sees it again and again, and lists it no more", exhibits)
      }
    },
    .attack("registry server: unknown CA between server and endpoint") {
      try await live { scene in
        let attacker = try InterceptingProxy.transparent(
          upstream: .loopback(scene.site.server.port), authority: scene.stage.otherRoot())
        try await scene.intercept(by: attacker, seconds: 240)
        try show(
          try await scene.registry.administrator.alerts() == ["chain-refused"], "nobody is told")
        return try AttackOutcome(
          "an alert and no pin; his key then meets apps under a certificate that they trust",
          try await scene.useKey(of: attacker))
      }
    },
    .attack("registry server: trusted CA between server and endpoint") {
      let stage = try Environment()
      let site = try stage.site()
      let vantage = try InterceptingProxy.tunnelling { _, _ in .loopback(site.server.port) }
      return try await live(on: stage, sites: [site], vantagePoints: [vantage]) { scene in
        let attacker = try scene.middleman()
        try await scene.intercept(by: attacker, seconds: 600)
        try await scene.mustHold(attacker, "vantage-points")
        return try AttackOutcome(
          "a second place sees another key, so his is held", try await scene.useKey(of: attacker))
      }
    },
    .attack("registry server: trusted new CA between server and endpoint") {
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.otherRoot())
      return try await live(on: stage, sites: [site], believing: [other]) { scene in
        let attacker = try InterceptingProxy.transparent(
          upstream: .loopback(site.server.port), authority: other)
        try await scene.intercept(by: attacker, seconds: 600)
        try await scene.mustHold(attacker, "new-issuer")
        return try AttackOutcome(
          "seen from one place, under a root that the endpoint never had: held for a person",
          try await scene.useKey(of: attacker))
      }
    },
    .attack("registry server: man in the middle cuts the other places off") {
      let stage = try Environment()
      let (site, other) = (try stage.site(), try stage.otherRoot())
      let isCut = Locked(false)
      let vantage = try InterceptingProxy.tunnelling { _, _ in
        isCut.withLock { $0 } ? nil : .loopback(site.server.port)
      }
      return try await live(
        on: stage, sites: [site], believing: [other], vantagePoints: [vantage]
      ) { scene in
        let attacker = try InterceptingProxy.transparent(
          upstream: .loopback(site.server.port), authority: other)
        isCut.withLock { $0 = true }
        try await scene.intercept(by: attacker, seconds: 600)
        try await scene.mustHold(attacker, "new-issuer", "vantage-points")
        return try AttackOutcome(
          "under a root that the endpoint never had: a place that cannot ask vouches for nothing",
          try await scene.useKey(of: attacker))
      }
    },
    .attack("registry server: commands without a token") {
      try await live { scene in
        let registry = scene.registry
        let attacker = try scene.middleman()
        let identity = try scene.key(of: attacker)
        let stranger = try registry.tokenOfAnotherServer()
        for token in [nil, "", "null", stranger] {
          let thief = LiveAdministrator(
            server: try registry.administrator.server, token: token)
          for (path, body) in [
            ("stage", ["pin": .string(try identity.pin.base64)] as JSONObject),
            ("approve", ["pin": .string(try identity.pin.base64)]),
          ] {
            let answer = try await thief.send(
              "POST",
              "/documents/\(LiveRegistry.file)/endpoints/\(scene.site.host)%3A443/\(path)", body)
            try show(answer.status == 401, "\(path) was answered with \(answer.status)")
          }
        }
        try registry.mustList(identity, false)
        try await scene.app.client.refresh()
        return try AttackOutcome(
          "without a token, with an empty one, and with another server's",
          try await scene.attack(by: attacker, at: attacker.port))
      }
    },
  ]

  /// Runs a scene that ends with the outcome of an attack.
  static func live(
    on stage: Environment? = nil, sites: [Site]? = nil, believing: [CertificateAuthority] = [],
    vantagePoints: [InterceptingProxy] = [],
    _ body: (LiveScene) async throws -> AttackOutcome
  ) async throws -> AttackOutcome {
    let stage = try stage ?? Environment()
    var outcome: AttackOutcome?
    try await LiveScene.run(
      on: stage, sites: sites ?? [stage.site()], believing: believing, vantagePoints: vantagePoints
    ) { outcome = try await body($0) }
    guard let outcome else { throw Inconclusive("nothing was attacked") }
    return outcome
  }
}
