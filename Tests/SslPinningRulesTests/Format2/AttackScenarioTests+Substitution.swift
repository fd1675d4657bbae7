import CanonicalJSON
import SslPinningRules
import Testing

extension AttackScenarioTests {
  static let substitution: [String: Run] = [
    "M1": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      registry.version = 2
      let statement = try registry.statement()
      let signatures = try registry.signatures(over: statement)
      // Even a payload that the format-1 key signed: it is not looked at any more.
      registry.pins = [("a.example", 66)]
      let document = try registry.document(statement, signatures)
      try expectRefused(client, document, .otherPayload)
      #expect(throws: Never.self) {
        try RegistryEnvelope(parsing: document).verifiedPayload(by: TestKey.own)
      }
    },
    "M2": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      registry.version = 2
      registry.name = "other.json"
      try expectRefused(
        client, try registry.document(), .invalidStatement(.otherRegistry("other.json")))
      #expect(throws: RegistryError.invalidStatement(.otherRegistry("other.json"))) {
        try registry.client(under: RegistrySimulator.trust())
      }
      try registry.beginEpoch(online: 1)
      try expectRefused(
        client, try registry.document(), .invalidKeySet(epoch: 1, .otherRegistry("other.json")))
    },
    "M3": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      registry.version = 2
      // A statement of another type, well signed.
      var statement = try registry.statement()
      statement["type"] = .string("keyset")
      try expectRefused(
        client, try registry.document(statement, try registry.signatures(over: statement)),
        .invalidStatement(.otherType("keyset")))
      // Bytes that were signed as something else: as a key set, as a format-1 payload.
      let honest = try registry.statement()
      let notSigned = RegistryError.invalidStatement(
        .notSigned(by: .onlineKeys(epoch: 0)))
      for message in [
        DocumentSignature.Domain.keySet.bytes(over: honest),
        JSONValue.object(honest).canonicalBytes,
      ] {
        let signatures = try SimulatedKeys.signatures([0], over: message)
        try expectRefused(client, try registry.document(honest, signatures), notSigned)
      }
      // A statement in the place of a key set.
      let signatures = try SimulatedKeys.signatures(
        [0], over: DocumentSignature.Domain.keySet.bytes(over: honest))
      registry.keySets = [
        .object(["keySet": .object(honest), "signatures": .array(signatures.map(\.json))])
      ]
      try expectRefused(
        client, try registry.document(), .invalidKeySet(epoch: 1, .otherType("statement")))
    },
    "M4": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      try expectRefused(client, [], .malformed(.unexpectedEnd(offset: 0)))
      try expectRefused(client, [UInt8]("{}".utf8), .missingMember("payload"))
      registry.version = 2
      registry.isStripped = true
      try expectRefused(client, try registry.document(), .statementStripped)
      registry.isStripped = false
      let statement = try registry.statement()
      try expectRefused(
        client, try registry.document(statement, .null),
        .invalidStatement(.member("statementSignatures")))
      // The key set that the statement names is missing.
      (registry.epoch, registry.online) = (1, [0])
      try expectRefused(
        client, try registry.document(), .invalidStatement(.epoch(1, expected: 0)))
      // The pins hold until the statement expires.
      let end = RegistrySimulator.start + 90 * RegistrySimulator.day
      #expect(try client.accepts(at: end - 1))
      #expect(!(try client.accepts(at: end)))
    },
    "M5": {
      let registry = RegistrySimulator()
      let client = try registry.client()
      let text = String(decoding: try registry.document(), as: UTF8.self)
      let replaced = text.replacing(
        "\"domainName\":\"a.example\"", with: "\"domainName\":\"b.example\"")
      #expect(replaced != text)
      try expectRefused(client, [UInt8](replaced.utf8), .otherPayload)
    },
    "B1": {
      let registry = RegistrySimulator()
      let odd =
        [UInt8](" \r\n\t".utf8)
        + (try registry.document()).flatMap {
          $0 == UInt8(ascii: ",") ? [0x09, 0x2c, 0x0d, 0x0a] : [$0]
        }
      let client = try TrustedRegistry(
        accepting: odd, under: try RegistrySimulator.trust(), at: RegistrySimulator.start)
      let state = try JSONValue(parsing: client.state.encoded).objectValue
      #expect(state?["document"]?.stringValue.map { [UInt8]($0.utf8) } == odd)
    },
    "B2": {
      var registry = RegistrySimulator()
      registry.entryMembers = ",\"x\":[1,{\"y\":null}]"
      registry.extraStatementMembers = [("x", .object(["é": .number(1)]))]
      try registry.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role([1]), signedBy: [0],
        extra: [("x", .string("key set"))])
      (registry.epoch, registry.online) = (1, [1])
      let client = try registry.client()
      #expect(client.statement?.json["x"] != nil)
      let text = String(decoding: try registry.document(), as: UTF8.self)
      for (from, to, refusal) in [
        ("\"y\":null", "\"y\":true", RegistryError.otherPayload),
        ("\"é\":1", "\"é\":2", .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1)))),
        (
          "\"é\":1", "\"e\u{301}\":1",
          .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1)))
        ),
        (
          "key set", "key\u{a0}set",
          .invalidKeySet(epoch: 1, .notSigned(by: .root(epoch: 0)))
        ),
      ] {
        let changed = [UInt8](text.utf8).replacing([UInt8](from.utf8), with: [UInt8](to.utf8))
        #expect(changed != [UInt8](text.utf8))
        #expect(throws: refusal) {
          try TrustedRegistry(
            accepting: changed, under: try RegistrySimulator.trust(), at: RegistrySimulator.start)
        }
      }
    },
    // Names are values here and never parts of paths; they are compared byte for byte.
    "U1": {
      let names = ["?", "#", "/example.json", "../example.json", "é", "e\u{301}", ""]
      for name in names {
        var registry = RegistrySimulator()
        registry.name = name
        let client = try registry.client()
        #expect(client.statement?.registry.utf8.elementsEqual(name.utf8) == true)
        for other in names where !other.utf8.elementsEqual(name.utf8) {
          let trust = try RegistrySimulator.trust(other)
          #expect(throws: RegistryError.invalidStatement(.otherRegistry(name))) {
            try registry.client(under: trust)
          }
        }
      }
    },
  ]
}
