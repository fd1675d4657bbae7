import CanonicalJSON
import FaultLab
import SslPinning
import SslPinningRules
import TLSTools

/// What apps ask for beside a listed key, told by the real registry server: a CA that is enough, or one that is needed.
enum LiveTermsRows {
  static let changes: [Row] = [
    .change("registry server: a CA is enough, in a burst, with a held key, and without a registry")
    {
      log in
      let stage = try Environment()
      let sites = try [Environment.host, "bank.localhost", "mail.localhost"].map {
        try stage.site($0)
      }
      let other = try stage.otherRoot()
      try await LiveScene.run(on: stage, sites: sites, believing: [other]) { scene in
        let registry = scene.registry
        let person = try registry.administrator
        // Both CAs by which the host's certificates may come, as the documentation has it.
        for site in sites {
          try await person.accept("any", [stage.authority.root, other.root], at: site.host)
        }
        try await scene.hour(log)
        func getAll() async throws {
          for site in sites {
            await log.get(try site.url(), scene.app.dialers, expecting: site.body)
          }
        }
        // Nobody waits for the server to see it.
        for site in sites { try site.rotate(to: stage.issue(site.host)) }
        log.changed()
        try await scene.dial(log, at: sites, seconds: 120)
        // Nobody approves the next ones.
        for site in sites {
          try await person.must("PATCH", path(site.host), ["approval": .string("manual")])
          try site.rotate(to: stage.issue(site.host))
        }
        try await scene.dial(log, at: sites, seconds: 120)
        for site in sites {
          try show(try await person.pending(site.host).count == 1, "the key is not held")
        }
        try show(try await person.refusing() == 0, "apps are said to be refused")
        try await getAll()
        // Nobody publishes anything, and the certificates come from the second CA, which no probe ever saw.
        try await registry.stopServer()
        registry.time.skip(seconds: 60 * Timeline.day)
        for site in sites { try site.rotate(to: stage.issue(site.host, by: other, from: -1)) }
        try await getAll()
      }
      return ChangeOutcome(
        "match any: new keys that nobody announced, that wait for a person, and that came under the second CA while"
          + " the registry was down for 60 days", log)
    },
    .change("registry server: a CA is needed beside the key") { log in
      try await LiveScene.run { scene in
        let (site, stage) = (scene.site, scene.stage)
        try await scene.registry.administrator.accept("all", [stage.authority.root], at: site.host)
        try await scene.hour(log)
        try await scene.get(log)
        try site.rotate(to: stage.issue(site.host))
        log.changed()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
      }
      return ChangeOutcome("match all: a new key under the CA is published as ever", log)
    },
  ]

  static let attacks: [Row] = [
    .attack("registry server: certificate of a CA that is enough, and of one that is not") {
      let stage = try Environment()
      let other = try stage.otherRoot()
      return try await LiveAttackRows.live(on: stage, sites: [stage.site()], believing: [other]) {
        scene in
        let person = try scene.registry.administrator
        try await person.accept("any", [stage.authority.root], at: scene.site.host)
        try await scene.hour()
        // The price, as the documentation has it.
        let attacker = try scene.middleman()
        let seconds = try await scene.secondsAccepted(of: attacker, during: 5)
        try show(seconds == 5, "accepted for \(seconds) s of 5")
        let stranger = try InterceptingProxy.transparent(
          upstream: .loopback(scene.site.server.port), authority: other)
        let control = Dialer.unpinned(stage.trust([other]), at: stage.timeline.device)
        scene.site.lead(to: stranger.port)
        let refused = try await AttackTrial(
          scene.site.url(), attacker: stranger, control: control, pinned: scene.app.dialers,
          .inHandshake("leaf-pin", "ca-pin"))
        scene.site.lead()
        try await person.accept("all", [stage.authority.root], at: scene.site.host)
        try await scene.hour()
        return AttackOutcome(
          "match any: whoever has a certificate of the named CA gets in, in \(seconds) of \(seconds) seconds; of"
            + " another trusted CA nobody does, nor of the named one after match all",
          refused, try await scene.attack(by: attacker, at: attacker.port))
      }
    },
    .attack("registry server: stolen key under a CA that is not asked for") {
      let stage = try Environment()
      let other = try stage.otherRoot()
      return try await LiveAttackRows.live(on: stage, sites: [stage.site()], believing: [other]) {
        scene in
        let site = scene.site
        try await scene.registry.administrator.accept("all", [stage.authority.root], at: site.host)
        try await scene.hour()
        let thief = try LocalTLSServer(
          identity: stage.issue(site.host, key: site.server.identity.key, by: other, from: -1)
        ) { _ in .text("read") }
        site.lead(to: thief.port)
        let refused = try await AttackTrial(
          site.url(), attacker: thief,
          control: .unpinned(stage.trust([other]), at: stage.timeline.device),
          pinned: scene.app.dialers, .inHandshake("ca-pin"))
        site.lead()
        try await scene.app.mustBeServed(by: site)
        return AttackOutcome(
          "match all: the listed key itself, in a certificate of another trusted CA", refused)
      }
    },
  ]

  fileprivate static func path(_ host: String, _ rest: String = "") -> String {
    "/documents/\(LiveRegistry.file)/endpoints/\(host)%3A443\(rest)"
  }
}

extension LiveAdministrator {
  /// Has apps take these CAs above a host's key: beside it (`all`), or in its place (`any`).
  fileprivate func accept(
    _ match: String, _ authorities: [Certificate], at host: String
  ) async throws {
    try await must(
      "POST", LiveTermsRows.path(host, "/terms"),
      [
        "match": .string(match),
        "ca": .array(
          try authorities.map { .string(try SPKIPin(certificateDER: $0.der).base64) }),
      ])
  }

  /// How many conditions have apps refused now.
  fileprivate func refusing() async throws -> Int64? {
    try await must("GET", "/overview")["refusing"]?.objectValue?["total"]?.integerValue
  }
}
