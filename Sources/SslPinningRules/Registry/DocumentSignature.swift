import CanonicalJSON

/// One signature of a key set or a statement: `{"keyId": "<base64>", "signature": "<base64>"}`.
///
/// - The key's entry fixes the algorithm; a signature names only its key.
/// - A signature by an unknown key, or an unreadable one, is ignored: a set may be signed by keys that only
///   newer clients know.
/// - If a key signs twice, the whole list is unreadable: documents that pass here must not mislead a
///   verifier that counts entries instead of keys.
public struct DocumentSignature: Sendable {
  /// The kind of document, as the first bytes that the signature covers: a signature over one kind never
  /// passes for another, nor for a format-1 payload, which begins with `{`.
  public enum Domain: String, Sendable {
    /// A key set.
    case keySet = "ssl-pinning keyset v2\0"
    /// A statement.
    case statement = "ssl-pinning statement v2\0"

    /// The bytes to sign: the domain, then the RFC 8785 form.
    public func bytes(over document: JSONObject) -> [UInt8] {
      [UInt8](rawValue.utf8) + JSONValue.object(document).canonicalBytes
    }
  }

  /// The key's id as written.
  package let keyID: String
  /// `nil` if the text is not base64.
  let signature: [UInt8]?

  /// A signature by a key.
  public init(by key: SPKIPin, _ signature: [UInt8]) {
    self.keyID = key.base64
    self.signature = signature
  }

  private init?(_ json: JSONValue) {
    guard let entry = json.objectValue, let keyID = entry["keyId"]?.stringValue,
      let signature = entry["signature"]?.stringValue
    else { return nil }
    self.keyID = keyID
    self.signature = StrictBase64.decode(signature)
  }

  /// The entry as documents carry it.
  public var json: JSONValue {
    .object([
      "keyId": .string(keyID), "signature": .string(StrictBase64.encode(signature ?? [])),
    ])
  }

  /// Whether it is one, and has no more bytes. (RSA with 8192 bits has 1024, ML-DSA-87 of FIPS 204 4627.)
  func isWithin(_ bytes: Int) -> Bool {
    keyID.utf8.count <= 64 && (signature?.count ?? .max) <= bytes
  }

  /// Reads the list beside a key set or a statement.
  ///
  /// - Throws: ``DocumentFault/member(_:)`` and ``DocumentFault/signsTwice(keyID:)``.
  package static func list(_ json: JSONValue?, _ name: String) throws(DocumentFault) -> [Self] {
    guard let entries = json?.arrayValue else { throw .member(name) }
    var seen: Set<[UInt8]> = []
    var signatures: [Self] = []
    for entry in entries {
      guard let signature = Self(entry) else { throw .member(name) }
      guard seen.insert([UInt8](signature.keyID.utf8)).inserted else {
        throw .signsTwice(keyID: signature.keyID)
      }
      signatures.append(signature)
    }
    return signatures
  }
}

/// The algorithm of a key in a key set. The key's entry determines it and never the signature, which could
/// otherwise choose the weakest.
public enum SignatureAlgorithm: String, Sendable, CaseIterable {
  /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017 §8.2), moduli of 1024 to 8192 bits.
  case rs512 = "RS512"
  /// ECDSA on P-256 with SHA-256 (FIPS 186-5 §6); the signature is the DER of `SEQUENCE { r, s }`
  /// (RFC 3279 §2.2.3), not the two numbers side by side as in RFC 7518.
  case es256 = "ES256"
  /// Ed25519 (RFC 8032 §5.1): 64 bytes.
  case edDSA = "EdDSA"
}

/// Checks signatures with one public key. The platform implements it.
public protocol SignatureVerifier: Sendable {
  /// Whether `signature` was made over `message` with this key. Any failure is `false`.
  func isValid(signature: [UInt8], over message: [UInt8]) -> Bool
}

/// The cryptography that the trust rules need. The platform implements it.
public protocol RegistryCrypto: Sendable {
  /// SHA-256 (FIPS 180-4): 32 bytes.
  func sha256(_ bytes: [UInt8]) -> [UInt8]

  /// The verifier for a key; `nil` if `spki` is not the canonical DER of a SubjectPublicKeyInfo for this
  /// algorithm.
  func verifier(_ algorithm: SignatureAlgorithm, spki: [UInt8]) -> (any SignatureVerifier)?
}
