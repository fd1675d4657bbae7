import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

extension AttackScenarioTests {
  /// A client and a registry in epoch 1, whose online role has these keys.
  static func epochOne(
    online keys: [Int], threshold: Int, _ registry: inout RegistrySimulator
  ) throws -> TrustedRegistry {
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role(keys, threshold: threshold),
      signedBy: [0])
    (registry.epoch, registry.online) = (1, keys)
    let client = try registry.client()
    registry.version = 2
    return client
  }

  static let notSigned = RegistryError.invalidStatement(
    .notSigned(by: .onlineKeys(epoch: 1)))

  /// A key set entry whose online role is this JSON.
  static func keySet(online role: JSONValue) throws -> JSONValue {
    var json = KeySet(
      registry: "example.json", epoch: 1, root: try SimulatedKeys.role([0]),
      online: try SimulatedKeys.role([0])
    ).json
    json["online"] = role
    let signatures = try SimulatedKeys.signatures(
      [0], over: DocumentSignature.Domain.keySet.bytes(over: json))
    return .object(["keySet": .object(json), "signatures": .array(signatures.map(\.json))])
  }

  static func keyJSON(_ number: Int) throws -> JSONValue {
    let key = try SimulatedKeys.key(number)
    return .object([
      "alg": .string(key.algorithm.rawValue),
      "spki": .string(StrictBase64.encode(key.publicKeyDER)),
    ])
  }

  static let signatures: [String: Run] = [
    "T1": {
      var registry = RegistrySimulator()
      let client = try epochOne(online: [1, 2, 3], threshold: 3, &registry)
      registry.online = [1, 2]
      let twoOfThree = RegistryError.invalidStatement(
        .tooFewSignatures(of: .onlineKeys(epoch: 1), count: 2, threshold: 3))
      try expectRefused(client, try registry.document(), twoOfThree, epoch: 1)
      #expect("\(twoOfThree)".hasSuffix("2 of the online keys of epoch 1 signed it, and 3 must"))
      // Nobody's signature at all is another matter: perhaps it is another registry's.
      registry.online = [4]
      try expectRefused(client, try registry.document(), notSigned, epoch: 1)
      registry.online = [3, 1, 2]
      #expect(try client.update(with: registry).refusal == nil)
    },
    "T2": {
      #expect(throws: DocumentFault.threshold(6, keys: 5)) {
        try SimulatedKeys.role([1, 2, 3, 4, 5], threshold: 6)
      }
      #expect(throws: DocumentFault.threshold(0, keys: 1)) {
        try SimulatedKeys.role([1], threshold: 0)
      }
      #expect(throws: DocumentFault.threshold(1, keys: 0)) {
        try SimulatedKeys.role([], threshold: 1)
      }
      var registry = RegistrySimulator()
      let client = try registry.client()
      for (threshold, fault) in [
        (3, DocumentFault.threshold(3, keys: 2)), (0, .threshold(0, keys: 2)),
      ] {
        registry.keySets = [
          try keySet(
            online: .object([
              "keys": .array([try keyJSON(1), try keyJSON(2)]),
              "threshold": .number(threshold == 3 ? 3 : 0),
            ]))
        ]
        (registry.epoch, registry.online) = (1, [1, 2])
        try expectRefused(
          client, try registry.document(), .invalidKeySet(epoch: 1, fault))
      }
    },
    "T3": {
      let id = try SimulatedKeys.roleKey(1).id
      #expect(throws: DocumentFault.duplicateKey(id)) { try SimulatedKeys.role([1, 2, 1]) }
      var registry = RegistrySimulator()
      let client = try registry.client()
      registry.keySets = [
        try keySet(
          online: .object([
            "keys": .array(Array(repeating: try keyJSON(1), count: 9)), "threshold": .number(6),
          ]))
      ]
      (registry.epoch, registry.online) = (1, [1])
      try expectRefused(
        client, try registry.document(), .invalidKeySet(epoch: 1, .duplicateKey(id)))
    },
    "T4": {
      var registry = RegistrySimulator()
      let client = try epochOne(online: [1, 2], threshold: 2, &registry)
      let id = try SimulatedKeys.roleKey(1).id.base64
      registry.online = [1, 1]
      try expectRefused(
        client, try registry.document(), .invalidStatement(.signsTwice(keyID: id)), epoch: 1)
      // Enough distinct keys do not make up for it.
      registry.online = [1, 2, 1]
      try expectRefused(
        client, try registry.document(), .invalidStatement(.signsTwice(keyID: id)), epoch: 1)
      registry.online = [1, 2]
      #expect(try client.update(with: registry).refusal == nil)
    },
    "T5": {
      var registry = RegistrySimulator()
      let client = try epochOne(online: [1, 2], threshold: 1, &registry)
      registry.online = [1]
      let statement = try registry.statement()
      let good = try registry.signatures(over: statement).map(\.json)
      let other = try SimulatedKeys.roleKey(2).id.base64
      for (keyID, signature) in [
        (other, "AAAA"), (other, ""), (other, "no base64"), ("no key", "AAAA"), ("", ""),
      ] {
        let extra = JSONValue.object(["keyId": .string(keyID), "signature": .string(signature)])
        for list in [good + [extra], [extra] + good] {
          let update = client.update(
            with: try registry.document(statement, .array(list)),
            under: try RegistrySimulator.trust(), at: RegistrySimulator.start)
          #expect(update.refusal == nil)
        }
        try expectRefused(
          client, try registry.document(statement, .array([extra])), notSigned, epoch: 1)
      }
    },
    "T6": {
      var registry = RegistrySimulator()
      let client = try epochOne(online: [1], threshold: 1, &registry)
      for signers in [[], [2], [0]] {
        registry.online = signers
        try expectRefused(client, try registry.document(), notSigned, epoch: 1)
      }
      // The first of two new key sets is good, the second is signed by nobody.
      try registry.beginEpoch(online: 2)
      try registry.add(root: SimulatedKeys.role([0]), online: SimulatedKeys.role([3]), signedBy: [])
      (registry.epoch, registry.online) = (3, [3])
      try expectRefused(
        client, try registry.document(),
        .invalidKeySet(epoch: 3, .notSigned(by: .root(epoch: 2))), epoch: 2)
    },
    // What an app ships is checked before there is anything to send a request for.
    "T7": {
      #expect(throws: DocumentFault.self) {
        try RegistryTrust(registry: "example.json", rootKeys: [], threshold: 1)
      }
      let key = try TrustKey(try SimulatedKeys.key(0).publicKeyPEM)
      #expect(throws: DocumentFault.duplicateKey(key.id)) {
        try RegistryTrust(registry: "example.json", rootKeys: [key, key], threshold: 1)
      }
      #expect(throws: DocumentFault.threshold(2, keys: 1)) {
        try RegistryTrust(registry: "example.json", rootKeys: [key], threshold: 2)
      }
      let trust = try RegistryTrust(registry: "example.json", rootKeys: [key], threshold: 1)
      #expect(trust.requiresStatement)
      var registry = RegistrySimulator()
      let clock = RegistrySimulator.start
      #expect(throws: Never.self) {
        try TrustedRegistry(bundled: try registry.document(), under: trust, at: clock)
      }
      registry.online = [1]
      #expect(throws: RegistryError.self) {
        try TrustedRegistry(bundled: try registry.document(), under: trust, at: clock)
      }
      #expect(throws: RegistryError.malformed(.unexpectedEnd(offset: 0))) {
        try TrustedRegistry(bundled: [], under: trust, at: clock)
      }
    },
    "T8": {
      for kind in [TrustSigningKey.Kind.rsa(bits: 1024), .p256, .ed25519] {
        let (own, other) = (try TrustSigningKey.generate(kind), try TrustSigningKey.generate(kind))
        let role = try KeyRole(keys: [own.roleKey], threshold: 1)
        let trust = try RegistrySimulator.trust(root: role)
        let id = own.roleKey.id
        let registry = RegistrySimulator()
        let statement = try registry.statement()
        let message = DocumentSignature.Domain.statement.bytes(over: statement)
        let clock = RegistrySimulator.start
        let client = try TrustedRegistry(
          accepting: try registry.document(
            statement, [DocumentSignature(by: id, try own.sign(message))]), under: trust, at: clock)
        let wrong = [
          try other.sign(message), try own.sign(message + [0]),
          try own.sign(DocumentSignature.Domain.keySet.bytes(over: statement)),
        ]
        for signature in wrong {
          try expectRefused(
            client, try registry.document(statement, [DocumentSignature(by: id, signature)]),
            .invalidStatement(.notSigned(by: .onlineKeys(epoch: 0))), under: trust)
        }
      }
    },
    "T9": {
      var registry = RegistrySimulator()
      guard case .object(var key) = try keyJSON(1) else { return }
      key["keyid_hash_algorithms"] = .array([.string("md5")])
      let role = JSONValue.object(["keys": .array([.object(key)]), "threshold": .number(1)])
      registry.keySets = [try keySet(online: role)]
      (registry.epoch, registry.online) = (1, [1])
      let client = try registry.client()
      #expect(client.keySetEpoch == 1)
      let text = String(decoding: try registry.document(), as: UTF8.self)
      #expect(throws: RegistryError.invalidKeySet(epoch: 1, .notSigned(by: .root(epoch: 0)))) {
        try TrustedRegistry(
          accepting: [UInt8](text.replacing("md5", with: "sha256").utf8),
          under: try RegistrySimulator.trust(), at: RegistrySimulator.start)
      }
    },
    "K1": {
      for sequence in KeyRotationTests.sequences(\.root) {
        try KeyRotationTests().root(sequence: sequence)
      }
    },
    "K2": {
      for sequence in KeyRotationTests.sequences(\.nonRoot) {
        try KeyRotationTests().online(sequence: sequence)
      }
    },
  ]
}
