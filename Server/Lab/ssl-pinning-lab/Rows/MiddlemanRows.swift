import FaultLab
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Attackers on the wire, with any certificate that they can get.
enum MiddlemanRows {
  private static let bank = "bank.localhost"

  static let all: [Row] = [
    .attack("CA-trusted man in the middle") {
      let scene = try await Scenario()
      let (attacker, _) = try scene.middleman()
      return try AttackOutcome(
        "his certificate is from the CA that the client trusts",
        try await scene.attack(by: attacker, at: attacker.port, .inHandshake("leaf-pin")))
    },
    .attack("other host's certificate") {
      let key = try PrivateKey.generate(.p256)
      let scene = try await Scenario(prepare: { try $1.list(bank, $0.issue(bank, key: key)) })
      let (site, stage) = (scene.site, scene.stage)
      let attacker = try LocalTLSServer(identity: stage.issue(bank, key: key)) { _ in .text("read")
      }
      site.lead(to: attacker.port)
      let name = try await AttackTrial(
        site.url(), attacker: attacker, control: stage.blindControl, pinned: scene.app.dialers,
        .inHandshake("host-name"))
      // The same key in a certificate for both names: only the pins protect the app.
      try attacker.replaceIdentity(
        stage.issue(bank, site.host, key: key), closingConnections: true)
      let pins = try await scene.attack(by: attacker, at: attacker.port, .inHandshake("leaf-pin"))
      return AttackOutcome(
        "another listed host's pinned key, in its own certificate and in one for both names", name,
        pins)
    },
    .attack("expired") {
      let scene = try await Scenario()
      let (site, stage) = (scene.site, scene.stage)
      let attacker = try LocalTLSServer(
        identity: stage.issue(site.host, key: site.server.identity.key, from: -90, to: -1)
      ) { _ in .text("read") }
      site.lead(to: attacker.port)
      return AttackOutcome(
        "the pinned key itself, in a certificate that ended yesterday",
        try await AttackTrial(
          site.url(), attacker: attacker,
          control: .unpinned(
            stage.trust, at: stage.timeline.world - 5 * Timeline.day,
            name: "a client of five days ago"), pinned: scene.app.dialers,
          .inHandshake("chain")))
    },
    .attack("self-signed") {
      let scene = try await Scenario()
      let (site, stage) = (scene.site, scene.stage)
      var exhibits: [AttackTrial] = []
      for key in [site.server.identity.key, try .generate(.p256)] {
        let identity = try ServerIdentity.selfSigned(names: [site.host], key: key)
        let attacker = try LocalTLSServer(identity: identity) { _ in .text("read") }
        site.lead(to: attacker.port)
        exhibits.append(
          try await AttackTrial(
            site.url(), attacker: attacker,
            control: .unpinned(
              .anchors([identity.leaf.der]), at: stage.timeline.world,
              name: "a client that accepts the certificate"), pinned: scene.app.dialers,
            .inHandshake("chain")))
      }
      return try AttackOutcome("the pinned key itself, and another", exhibits)
    },
    .attack("denied key") {
      let scene = try await Scenario()
      let stolen = scene.site.server.identity
      try scene.stage.registry.publish { $0.denied = [try stolen.pin] }
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      scene.site.lead(to: attacker.port)
      // The app does not know of it yet.
      try await scene.app.mustGet(scene.site.url(), "read")
      try await scene.stage.hour(scene.app)
      return try AttackOutcome(
        "a stolen key that is still listed, and denied since the last refresh",
        try await scene.attack(by: attacker, at: attacker.port, .inHandshake("denied-key")))
    },
    .attack("denied intermediate") {
      let stage = try Environment()
      let site = try stage.site()
      let root = try CertificateAuthority(chain: [stage.authority.root], key: stage.rootKey)
      let stolen = try root.issueIntermediate(
        name: "Stolen intermediate",
        validity: Environment.validity(stage.timeline.world, from: -1, to: 365))
      // The host pins only the root, so any chain below that passes.
      try stage.registry.publish { try $0.demand(site.host, root) }
      let app = try await stage.start()
      let attacker = try LocalTLSServer(identity: stage.issue(site.host, by: stolen, from: -1)) {
        _ in .text("read")
      }
      try await app.mustBeServed(by: site)
      site.lead(to: attacker.port)
      try await app.mustGet(site.url(), "read")
      try stage.registry.publish {
        $0.denied = [try SPKIPin(certificateDER: stolen.certificate.der)]
      }
      try await stage.hour(app)
      let exhibit = try await AttackTrial(
        site.url(), attacker: attacker, control: stage.control, pinned: app.dialers,
        .inHandshake("denied-key"))
      site.lead()
      try await app.mustBeServed(by: site)
      return AttackOutcome(
        "a stolen CA below the pinned root, denied since the last refresh", exhibit)
    },
    .attack("resumed session after removal") {
      let scene = try await Scenario()
      let (site, stage, app) = (scene.site, scene.stage, scene.app)
      let resumed = try await resumptions(scene)
      try stage.registry.publish { try $0.list(site.host, stage.issue(site.host)) }
      try await stage.hour(app)
      let before = site.server.counts.handshakesResumed
      let exhibits = try await scene.attack(
        by: site.server, at: site.server.port, .inHandshake("leaf-pin"))
      try show(site.server.counts.handshakesResumed == before, "a session was resumed")
      return try AttackOutcome(
        "the server goes on under the removed key, with tickets it gave out before (the app resumed"
          + " \(resumed) of \(3 * app.dialers.count) connections until then)", exhibits)
    },
    .attack("man in the middle behind an HTTPS proxy") {
      let lines = try ProxyLines.installed.get()
      let stage = try Environment()
      let host = "shop.example"
      let server = try LocalTLSServer(identity: stage.issue(host)) { _ in .text("served") }
      let route: InterceptingProxy.Route = { _, _ in .loopback(server.port) }
      let honest = try InterceptingProxy.tunnelling(route: route)
      let attacker = try InterceptingProxy.intercepting(authority: stage.authority, route: route)
      try stage.registry.publish { try $0.list(host, server.identity) }
      let app = try await stage.start()
      let url = try Site.url(host, 443)
      lines.secure.redirect(to: .loopback(honest.port))
      try await app.mustGet(url, "served")
      try show(honest.tunnels.last?.host == host, "the request went past the proxy")
      lines.secure.redirect(to: .loopback(attacker.port))
      return AttackOutcome(
        "an honest CONNECT proxy serves; one that reads along, by the trusted CA, does not",
        try await AttackTrial(
          url, attacker: attacker, control: stage.control, pinned: app.dialers,
          .inHandshake("leaf-pin")))
    },
  ]

  /// Three connections one after the other; a client may resume all but the first.
  private static func resumptions(_ scene: Scenario) async throws -> Int {
    scene.site.server.clearLog()
    for _ in 0..<3 {
      scene.site.lead()
      try await scene.app.mustBeServed(by: scene.site)
    }
    return scene.site.server.counts.handshakesResumed
  }
}
