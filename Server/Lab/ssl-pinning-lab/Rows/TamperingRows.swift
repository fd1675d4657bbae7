import CanonicalJSON
import Foundation
import SslPinning
import SslPinningRules
import TLSTools

/// Attackers who alter signed documents.
enum TamperingRows {
  static let all: [Row] = [
    .attack("tampered payload") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let honest = try scene.stage.registry.draft()
      var forged = honest
      try forged.list(scene.site.host, identity)
      var replaced = try honest.signed()
      replaced["payload"] = .object(forged.document.payload)
      return try AttackOutcome(
        "the attacker's key in the payload of a good statement",
        try await scene.forge(
          [(bytes(replaced), { $0 == .otherPayload })], attacker: attacker, port: attacker.port))
    },
    .attack("tampered statement") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let honest = try scene.stage.registry.draft()
      var forged = honest
      try forged.list(scene.site.host, identity)
      // The attacker's payload and digest, with the real statement's signature.
      var digest = try forged.signed()
      digest["statementSignatures"] = try honest.signed()["statementSignatures"]
      // Signed by the attacker's own key, under its own id and under the real key's id.
      let own = try TrustSigningKey.generate(.ed25519)
      forged.online = [own]
      let signed = try forged.signed()
      var posing = signed
      if let statement = forged.document.statement {
        let signature = try own.sign(statement.signedBytes)
        posing["statementSignatures"] = .array([
          DocumentSignature(by: scene.stage.registry.root.roleKey.id, signature).json
        ])
      }
      return try AttackOutcome(
        "the attacker's digest under the real signature, under his own, and under his own with the"
          + " real key's id",
        try await scene.forge(
          [
            (bytes(digest), \.isUnsigned), (bytes(signed), \.isUnsigned),
            (bytes(posing), \.isUnsigned),
          ], attacker: attacker, port: attacker.port))
    },
    .attack("forged key set") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let own = try TrustSigningKey.generate(.ed25519)
      // The attacker's own root and online key, self-signed: once with their ids, once with the real key's.
      var forged = try scene.stage.registry.draft { try $0.list(scene.site.host, identity) }
      forged.root = own
      try DrillRegistry.beginEpoch(&forged, online: own)
      let signed = try forged.signed()
      var posing = signed
      var entry = signed["keySets"]?.arrayValue?.first?.objectValue
      if let set = entry?["keySet"]?.objectValue {
        let signature = try own.sign(DocumentSignature.Domain.keySet.bytes(over: set))
        entry?["signatures"] = .array([
          DocumentSignature(by: scene.stage.registry.root.roleKey.id, signature).json
        ])
      }
      posing["keySets"] = entry.map { .array([.object($0)]) }
      return try AttackOutcome(
        "a key set of the attacker's, signed by himself, under his id and under the root's",
        try await scene.forge(
          [(bytes(signed), \.isKeySet), (bytes(posing), \.isKeySet)], attacker: attacker,
          port: attacker.port))
    },
    .attack("stripped statement") {
      let stolen = try SigningKey.generate(bits: 2048)
      let scene = try await Scenario(
        prepare: { $1.format1Key = stolen },
        adjust: {
          $0.signingKeyBase64 = stolen.publicKeyPEM
          $0.requireStatement = true
        })
      let (attacker, identity) = try scene.middleman()
      let forged = try scene.stage.registry.draft {
        try $0.list(scene.site.host, identity)
        $0.hasStatement = false
      }.bytes()
      let exhibits = try await scene.forge(
        [(forged, { $0 == .statementStripped })], attacker: attacker, port: attacker.port)
      scene.stage.registry.serve(forged)
      let (root, signing) = (scene.stage.registry.root.publicKeyPEM, stolen.publicKeyPEM)
      do {
        _ = try await scene.stage.start {
          $0.storage = .none
          $0.rootKeys = [root]
          $0.signingKeyBase64 = signing
        }
        throw Breach("a first start that requires a statement believed it")
      } catch SslPinningError.registryRefused(.statementRequired, _) {}
      return try AttackOutcome(
        "a document of format 1, signed with the stolen key of format 1; first starts with root"
          + " keys refuse it too", exhibits)
    },
    .attack("duplicate JSON members") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let honest = try scene.stage.registry.draft()
      var forged = honest
      try forged.list(scene.site.host, identity)
      let good = String(decoding: try honest.bytes(), as: UTF8.self)
      let payload = text(.object(forged.document.payload))
      let keys = payload.dropFirst().dropLast()
      let documents = [
        "{\"payload\":\(payload)," + good.dropFirst(), good.dropLast() + ",\"payload\":\(payload)}",
        good.dropLast() + ",\"payl\\u006fad\":\(payload)}",
        good.replacingOccurrences(of: "\"payload\":{", with: "\"payload\":{\(keys),"),
      ]
      let forgeries = documents.map { document in
        (bytes: Array(document.utf8), refused: { (e: RegistryError) in e.isMalformed })
      }
      return try AttackOutcome(
        "two payloads in one document: before, behind, escaped, and inside",
        try await scene.forge(forgeries, attacker: attacker, port: attacker.port))
    },
    .attack("tampered storage") {
      let scene = try await Scenario()
      let (attacker, identity) = try scene.middleman()
      let real = try scene.site.server.identity.pin.base64
      try scene.stage.rewriteStorage {
        $0.replacingOccurrences(of: real, with: (try? identity.pin.base64) ?? "")
      }
      let app = try await scene.stage.start()
      return try AttackOutcome(
        "the attacker's key in the file that the app starts from",
        try await scene.attack(
          by: attacker, at: attacker.port, .inHandshake("leaf-pin"), with: app))
    },
  ]

  private static func bytes(_ document: JSONObject) -> [UInt8] {
    JSONValue.object(document).canonicalBytes
  }

  private static func text(_ value: JSONValue) -> String {
    String(decoding: value.canonicalBytes, as: UTF8.self)
  }
}
