import Pinning
import SslPinning
import TLSTools

/// Attackers who answer for the registry, and have a key that some document lists or once listed.
enum RegistryAttackRows {
  static let all: [Row] = [
    .attack("rollback") {
      let stage = try Stage()
      let site = try stage.site()
      let stolen = site.server.identity
      let old = try stage.registry.publish { try $0.list(site.host, stolen) }
      let app = try await stage.start()
      try await app.mustBeServed(by: site)
      let new = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, new) }
      try await app.client.refresh()
      try site.rotate(to: new)
      try await app.mustBeServed(by: site)
      stage.registry.serve(old)
      try await app.mustRefuse { if case .rolledBack = $0 { true } else { false } }
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      site.lead(to: attacker.port)
      let again = try await stage.start()
      return AttackOutcome(
        "version 1 and its stolen key played back, before and after a restart",
        try await Exhibit(
          site.url(), attacker: attacker, control: stage.control, pinned: app.dialers,
          .inHandshake("leaf-pin")),
        try await Exhibit(
          site.url(), attacker: attacker, control: stage.control, pinned: again.dialers,
          .inHandshake("leaf-pin")))
    }
  ]
}
