import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningRules
import TLSTools

/// Attackers in the registry's place who replay documents that were signed for another time or another app.
enum RegistryAttackRows {
  static let all: [Row] = [
    .attack("rollback") {
      let scene = try await Scenario()
      let stolen = scene.site.server.identity
      let old = try scene.stage.registry.book.bytes()
      try await scene.rotate()
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      var exhibits = try await scene.forge(
        [(old, \.isRollback)], attacker: attacker, port: attacker.port)
      let restarted = try await scene.stage.start()
      exhibits += try await scene.attack(
        by: attacker, at: attacker.port, .inHandshake("leaf-pin"), with: restarted)
      // The control: a device that knows nothing yet believes the old document.
      let naive = try await scene.stage.start { $0.storage = .none }
      scene.site.lead(to: attacker.port)
      try await naive.mustGet(scene.site.url(), "read")
      return try AttackOutcome(
        "version 1 and its stolen key, before and after a restart; a device that never saw version 2"
          + " would believe it", exhibits)
    },
    .attack("rollback of a bundled registry") {
      let scene = try await Scenario()
      let stolen = scene.site.server.identity
      let old = try scene.stage.registry.book.bytes()
      try await scene.rotate()
      let bundled = Data(try scene.stage.registry.book.bytes())
      scene.stage.registry.serve(old)
      let app = try await scene.stage.start {
        $0.bundledRegistry = bundled
        $0.storage = .none
      }
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      return try AttackOutcome(
        "a first start with version 2 in the app is offered version 1",
        try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("leaf-pin"), with: app))
    },
    .attack("freeze") {
      let scene = try await Scenario()
      let stolen = scene.site.server.identity
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      // The attacker keeps serving version 1, whatever the operator publishes.
      let old = try scene.stage.registry.book.bytes()
      try scene.stage.registry.publish {
        $0.keys = []
        try $0.list(scene.site.host, scene.stage.issue(scene.site.host))
        $0.denied = [try stolen.pin]
      }
      scene.stage.registry.serve(old)
      scene.stage.timeline.pass(days: 89)
      try await scene.app.client.refresh()
      scene.site.lead(to: attacker.port)
      try await scene.app.mustGet(scene.site.url(), "read")
      scene.stage.timeline.pass(days: 1)
      return try AttackOutcome(
        "held at version 1: its stolen key serves until day 90, when the statement ends, and never"
          + " after, restarted or not",
        try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("expired-registry"), with: scene.app,
          scene.stage.start()))
    },
    .attack("mix-and-match") {
      let scene = try await Scenario()
      let stolen = scene.site.server.identity
      let old = try scene.stage.registry.book.signed()
      try await scene.rotate()
      var newer = try scene.stage.registry.draft().signed()
      newer["payload"] = old["payload"]
      newer["signature"] = old["signature"]
      var older = try scene.stage.registry.draft().signed()
      older["statement"] = old["statement"]
      let attacker = try LocalTLSServer(identity: stolen) { _ in .text("read") }
      return try AttackOutcome(
        "statement of version 3 with the payload of version 1, and its signatures with the old"
          + " statement",
        try await scene.forge(
          [(bytes(newer), { $0 == .otherPayload }), (bytes(older), \.isUnsigned)],
          attacker: attacker, port: attacker.port))
    },
    .attack("other app's registry") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let other = try scene.stage.registry.draft {
        $0.name = "other.json"
        try $0.list(scene.site.host, identity)
      }.bytes()
      let exhibits = try await scene.forge(
        [(other, \.isOtherRegistry)], attacker: attacker, port: attacker.port)
      do {
        _ = try await scene.stage.start { $0.storage = .none }
        throw Breach("a first start believed it")
      } catch SslPinningError.registryRefused(let reason, _) {
        try show(reason.isOtherRegistry, "the first start was refused for \(reason)")
      }
      return try AttackOutcome(
        "another app's document, signed by the same operator's keys; first starts refuse it too",
        exhibits)
    },
    .attack("old online key") {
      let scene = try await Scenario()
      let (stolen, next) = try (TrustSigningKey.generate(.p256), TrustSigningKey.generate(.p256))
      let registry = scene.stage.registry
      try registry.beginEpoch(online: stolen)
      try registry.publish()
      try await scene.app.client.refresh()
      let (attacker, identity) = try scene.middleman()
      // While the key was valid, it could sign this.
      let first = try registry.draft {
        $0.version = 999
        try $0.list(scene.site.host, identity)
      }
      try registry.beginEpoch(online: next)
      try registry.publish()
      try await scene.app.client.refresh()
      var whole = first
      whole.keySets = registry.book.keySets
      var posing = whole
      posing.epoch = 2
      let exhibits = try await scene.forge(
        [
          (try first.bytes(), \.isUnsigned), (try whole.bytes(), \.isUnsigned),
          (try posing.bytes(), \.isUnsigned),
        ], attacker: attacker, port: attacker.port)
      return try AttackOutcome(
        "the online key of epoch 1 signs version 999 once epoch 2 is known, with and without its"
          + " key set", exhibits)
    },
    .attack("stolen online key after a new epoch") {
      let scene = try await Scenario()
      let (stolen, next) = try (TrustSigningKey.generate(.p256), TrustSigningKey.generate(.p256))
      let registry = scene.stage.registry
      try registry.beginEpoch(online: stolen)
      try registry.publish()
      try await scene.app.client.refresh()
      let (attacker, identity) = try scene.middleman()
      let forged = try registry.draft {
        $0.version = 1_000_000
        try $0.list(scene.site.host, identity)
      }.bytes()
      registry.serve(forged)
      try await scene.app.client.refresh()
      scene.site.lead(to: attacker.port)
      try await scene.app.mustGet(scene.site.url(), scene.site.body)
      scene.site.lead()
      try registry.beginEpoch(online: next)
      try registry.publish()
      try await scene.app.client.refresh()
      return try AttackOutcome(
        "the thief's document was believed until the root keys signed epoch 2, and its pin never"
          + " after",
        try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("leaf-pin"), with: scene.app,
          scene.stage.start()))
    },
  ]

  private static func bytes(_ document: JSONObject) -> [UInt8] {
    JSONValue.object(document).canonicalBytes
  }
}
