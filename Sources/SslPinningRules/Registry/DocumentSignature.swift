import CanonicalJSON

/// One signature of a key set or a statement: `{"keyId": "<base64>", "signature": "<base64>"}`.
///
/// - The key's entry fixes the algorithm; a signature names only its key.
/// - A signature of an unknown key, or one that cannot be read, counts for nothing and harms
///   nothing: a set may be signed by keys that only newer clients know.
/// - A key that signs twice makes the whole list unreadable: who counts entries instead of keys
///   must not be led astray by documents that pass here.
public struct DocumentSignature: Sendable {
  /// What is signed, as the first bytes that the signature covers: a signature over one kind of
  /// document never passes for another's, and none for a format-1 payload, which begins with `{`.
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
  /// `nil` where the text is no base64.
  let signature: [UInt8]?

  /// The signature of a key.
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

  /// Reads the list that stands beside a key set or a statement.
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
