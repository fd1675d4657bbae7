import TLSTools

/// Attackers on the wire.
enum MiddlemanRows {
  static let all: [Row] = [
    .attack("CA-trusted man in the middle") {
      let stage = try Stage()
      let site = try stage.site()
      try stage.registry.publish { try $0.list(site.host, site.server.identity) }
      let app = try await stage.start()
      try await app.mustBeServed(by: site)
      let attacker = try InterceptingProxy.transparent(
        upstream: .loopback(site.server.port), authority: stage.authority)
      site.lead(to: attacker.port)
      return AttackOutcome(
        "his certificate is from the CA that the client trusts",
        try await Exhibit(
          site.url(), attacker: attacker, control: stage.control, pinned: app.dialers,
          .inHandshake("leaf-pin")))
    }
  ]
}
