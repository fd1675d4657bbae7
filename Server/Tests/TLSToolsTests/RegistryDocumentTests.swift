import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Registry documents")
struct RegistryDocumentTests {
  static let start: Int64 = 1_800_000_000
  static let rsa = Result { try SigningKey.generate(bits: 2048) }
  static let pin = SPKIPin(computed: Digest.sha256([1]))
  static let caPin = SPKIPin(computed: Digest.sha256([2]))

  /// A document of epoch 1 under the one RSA key: statements are signed by another.
  static func document(_ online: TrustSigningKey) throws -> RegistryDocument {
    let root = try rsa.get().trustKey
    let set = KeySet(
      registry: "a.json", epoch: 1, root: try KeyRole(keys: [root.roleKey], threshold: 1),
      online: try KeyRole(keys: [online.roleKey], threshold: 1))
    return RegistryDocument(
      registry: "a.json",
      keys: [
        RegistryKey(
          pattern: try HostPattern("*.a.example"), pin: .success(pin), expires: start + 5,
          fqdn: "www.a.example")
      ],
      terms: .init(
        number: .init(epoch: 1, version: 7), issued: start, expires: start + 90 * 86400,
        hosts: [HostSettings(try HostPattern("*.a.example"), ca: [caPin], enforces: true)],
        denied: [SPKIPin(computed: Digest.sha256([3]))], removed: [try HostPattern("b.example")]),
      keySets: [try set.entry(signedBy: [root])])
  }

  static func trust(requiresStatement: Bool = true) throws -> RegistryTrust {
    try RegistryTrust(
      registry: "a.json", signingKey: try VerificationKey(try rsa.get().publicKeyPEM),
      requiresStatement: requiresStatement)
  }

  @Test("are what clients believe, under every algorithm of the online key")
  func believed() throws {
    for kind in [TrustSigningKey.Kind.rsa(bits: 2048), .p256, .ed25519] {
      let online = try TrustSigningKey.generate(kind)
      let bytes = try Self.document(online).bytes(
        format1Key: try Self.rsa.get(), onlineKeys: [online])
      let client = try TrustedRegistry(accepting: bytes, under: try Self.trust(), at: Self.start)
      #expect(client.stamp.version == .init(epoch: 1, version: 7))
      #expect(client.registry.keys.map(\.pin) == [.success(Self.pin)])
      #expect(client.registry.keys.map(\.expires) == [Self.start + 5])
      #expect(client.registry.keys.map(\.fqdn) == ["www.a.example"])
      #expect(client.registry.settings.map(\.ca) == [[Self.caPin]])
      #expect(client.statement?.denied.count == 1)
      #expect(client.expires == Self.start + 90 * 86400)
      // The same bytes are a document of format 1.
      #expect(throws: Never.self) {
        try TrustedRegistry(
          accepting: bytes, verifiedBy: try VerificationKey(try Self.rsa.get().publicKeyPEM),
          at: Self.start)
      }
      // What is signed is what stands there.
      #expect(try canonicalize(bytes) == bytes)
    }
  }

  @Test("without terms are documents of format 1 alone")
  func format1() throws {
    var document = try Self.document(try .generate(.ed25519))
    (document.terms, document.keySets) = (nil, [])
    let json = try document.signed(format1Key: try Self.rsa.get())
    #expect(json.keys == ["payload", "signature"])
    #expect(document.statement == nil)
    let bytes = JSONValue.object(json).canonicalBytes
    #expect(throws: Never.self) {
      try TrustedRegistry(
        accepting: bytes, under: try Self.trust(requiresStatement: false), at: Self.start)
    }
    #expect(throws: RegistryError.statementRequired) {
      try TrustedRegistry(accepting: bytes, under: try Self.trust(), at: Self.start)
    }
  }

  @Test("can be taken apart and made dishonest before they become bytes")
  func broken() throws {
    let online = try TrustSigningKey.generate(.ed25519)
    let good = try Self.document(online).signed(
      format1Key: try Self.rsa.get(), onlineKeys: [online])
    func refusal(_ change: (inout JSONObject) throws -> Void) throws -> RegistryError? {
      var json = good
      try change(&json)
      let trust = try Self.trust()
      do throws(RegistryError) {
        _ = try TrustedRegistry(
          accepting: JSONValue.object(json).canonicalBytes, under: trust, at: Self.start)
        return nil
      } catch { return error }
    }
    #expect(try refusal { _ in } == nil)
    #expect(try refusal { $0["signature"] = nil } == nil)
    #expect(try refusal { $0["statement"] = nil } == .statementRequired)
    #expect(
      try refusal { $0["keySets"] = nil }
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 0))))
    #expect(try refusal { $0["payload"] = .object(["keys": .array([])]) } == .otherPayload)
    // A changed statement, signed anew by the same key, is as good as the first one.
    func change(_ json: inout JSONObject, signs: Bool) throws {
      var statement = try #require(json["statement"]?.objectValue)
      statement["version"] = .number(8)
      json["statement"] = .object(statement)
      guard signs else { return }
      json["statementSignatures"] = .array([try online.signature(.statement, over: statement).json])
    }
    #expect(
      try refusal { try change(&$0, signs: false) }
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1))))
    #expect(try refusal { try change(&$0, signs: true) } == nil)
  }

  @Test("a key set signed by others than the root makes no client believe it")
  func foreignKeySet() throws {
    let online = try TrustSigningKey.generate(.ed25519)
    var document = try Self.document(online)
    let root = try Self.rsa.get().trustKey.roleKey
    let set = KeySet(
      registry: "a.json", epoch: 1, root: try KeyRole(keys: [root], threshold: 1),
      online: try KeyRole(keys: [online.roleKey], threshold: 1))
    document.keySets = [try set.entry(signedBy: [online])]
    let bytes = try document.bytes(format1Key: try Self.rsa.get(), onlineKeys: [online])
    #expect(throws: RegistryError.invalidKeySet(epoch: 1, .notSigned(by: .root(epoch: 0)))) {
      try TrustedRegistry(accepting: bytes, under: try Self.trust(), at: Self.start)
    }
  }

  @Test("a key that clients would not read is refused before it signs")
  func unreadableKey() async throws {
    let openssl = try OpenSSLCommand()
    let usual = try await openssl.make(
      "usual.pem", ["ecparam", "-name", "prime256v1", "-genkey", "-noout"])
    let compressed = try await openssl.make(
      "compressed.pem", ["ec", "-in", "usual.pem", "-conv_form", "compressed"])
    let explicit = try await openssl.make(
      "explicit.pem", ["ec", "-in", "usual.pem", "-param_enc", "explicit"])
    for key in [compressed, explicit] {
      #expect(throws: SigningKeyError.unreadableByClients) {
        try TrustSigningKey(pem: String(decoding: key, as: UTF8.self))
      }
    }
    #expect(throws: Never.self) {
      try TrustSigningKey(pem: String(decoding: usual, as: UTF8.self))
    }
  }
}
