import FaultLab
import SslPinning
import SslPinningRules
import TLSTools

extension ClientScenario {
  /// All of them, in the order of the output.
  static let all = changes + attacks

  private static let host = ClientStage.host

  private static let changes: [ClientScenario] = [
    .change("renewal", "a new certificate for the same key") { stage, _ in
      let (environment, site) = (stage.environment, stage.site)
      try site.rotate(to: environment.issue(host, key: site.server.identity.key))
    },
    .change("announced-rotation", "the backup key that every client has") { stage, _ in
      try stage.site.rotate(to: stage.backup)
    },
    .change("unannounced-rotation", "a key that no client was shipped with; the registry has it") {
      stage, _ in
      let new = try stage.environment.issue(host)
      try stage.publish { try $0.list(host, new, stage.backup) }
      try stage.site.rotate(to: new)
    },
    .change("second-rotation", "another key long after the backup was used up; the registry has it")
    {
      stage, dial in
      let new = try stage.environment.issue(host)
      try stage.publish { try $0.list(host, stage.backup, new) }
      try stage.site.rotate(to: stage.backup)
      try await dial()
      try stage.site.rotate(to: new)
    },
    .change("new-intermediate", "the same key under another intermediate of the same root") {
      stage, _ in
      let environment = stage.environment
      let root = try CertificateAuthority(
        chain: [environment.authority.root], key: environment.rootKey)
      let other = try root.issueIntermediate(name: "Another intermediate")
      try stage.site.rotate(
        to: environment.issue(host, key: stage.site.server.identity.key, by: other))
    },
    .change("new-root", "the same key under another root that clients trust") { stage, _ in
      try stage.site.rotate(
        to: stage.environment.issue(
          host, key: stage.site.server.identity.key, by: stage.otherRoot, from: -1))
    },
    .change("rsa-key", "an RSA key in place of the ECDSA key; the registry has it") { stage, _ in
      let new = try stage.environment.issue(host, key: .generate(.rsa(bits: 2048)))
      try stage.publish { try $0.list(host, new, stage.backup) }
      try stage.site.rotate(to: new)
    },
    .change("registry-away", "the registry is silent while the certificate is renewed") {
      stage, dial in
      stage.environment.registry.respond(HTTPResponse(status: 503))
      try await dial()
      try stage.site.rotate(
        to: stage.environment.issue(host, key: stage.site.server.identity.key))
    },
    .change("backup-denied", "the backup key was stolen and is denied; the site goes on") {
      stage, dial in
      let stolen = try stage.backup.pin
      try stage.publish { $0.denied = [stolen] }
      try await dial()
    },
  ]

  private static let attacks: [ClientScenario] = [
    .attack("trusted-ca", "another key, in a certificate of a CA that clients trust") { stage, _ in
      try stage.environment.issue(host)
    },
    .attack("other-trusted-root", "the same, of another root that clients trust") { stage, _ in
      try stage.environment.issue(host, by: stage.otherRoot, from: -1)
    },
    .attack("self-signed", "a self-signed certificate for the host") { _, _ in
      try .selfSigned(names: [host])
    },
    .attack("unknown-ca", "a CA of the same name that nobody trusts") { stage, _ in
      try CertificateAuthority.makeRoot(name: "Drill root").issue(names: [host])
    },
    .attack("expired", "the pinned key, in a certificate that has ended") { stage, _ in
      try stage.environment.issue(host, key: stage.site.server.identity.key, from: -60, to: -1)
    },
    .attack("not-yet-valid", "the pinned key, in a certificate of next week") { stage, _ in
      try stage.environment.issue(host, key: stage.site.server.identity.key, from: 7, to: 90)
    },
    .attack("other-name", "the pinned key, in a certificate for another host") { stage, _ in
      try stage.environment.issue("other.example", key: stage.site.server.identity.key)
    },
    .attack("pinned-key-unknown-ca", "the pinned key, under a CA that nobody trusts") { stage, _ in
      try CertificateAuthority.makeRoot(name: "Nobody's root")
        .issue(names: [host], key: stage.site.server.identity.key)
    },
    .attack("pin-sent-along", "another key, and the pinned certificate sent behind it") {
      stage, _ in
      let own = try stage.environment.issue(host)
      return try ServerIdentity(
        certificates: [own.leaf] + own.intermediates + [stage.site.server.identity.leaf],
        key: own.key)
    },
    .attack("leaf-as-ca", "a certificate signed with the pinned server's own key") { stage, _ in
      let identity = stage.site.server.identity
      return try CertificateAuthority(
        chain: [identity.leaf] + identity.intermediates + [stage.environment.authority.root],
        key: identity.key
      ).issue(names: [host])
    },
    .attack("stolen-backup", "the backup key, stolen; the registry denies it") { stage, dial in
      let stolen = try stage.backup.pin
      try stage.publish { $0.denied = [stolen] }
      try await dial()
      return stage.backup
    },
    .attack(
      "registry-rolled-back", "the same, and the registry of before the denial is played back"
    ) {
      stage, dial in
      let (stolen, registry) = (try stage.backup.pin, stage.environment.registry)
      let old = try registry.publish()
      try stage.publish { $0.denied = [stolen] }
      try await dial()
      registry.serve(old)
      try await dial()
      return stage.backup
    },
    .attack("registry-forged", "another key, listed by a registry of another signing key") {
      stage, _ in
      let (thief, registry) = (try stage.environment.issue(host), stage.environment.registry)
      let key = try TrustSigningKey.generate(.ed25519)
      registry.serve(
        try registry.draft {
          try $0.list(host, thief)
          ($0.root, $0.online) = (key, [key])
        }.bytes())
      return thief
    },
    .attack("registry-edited", "another key, written into the registry without signing it") {
      stage, _ in
      let (thief, registry) = (try stage.environment.issue(host), stage.environment.registry)
      let (pin, his) = (try stage.site.server.identity.pin.base64, try thief.pin.base64)
      let text = String(decoding: try registry.publish(), as: UTF8.self)
      registry.serve([UInt8](text.replacing(pin, with: his).utf8))
      return thief
    },
  ]
}
