import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A key set with the signatures that it has so far: root keys are kept apart, so they sign one
/// after another.
public struct SignedKeySet: Sendable {
  /// The set.
  public let keySet: KeySet
  /// Each key once.
  public private(set) var signatures: [DocumentSignature] = []

  /// A set that nobody has signed.
  public init(_ keySet: KeySet) { self.keySet = keySet }

  /// Reads an entry of `keySets`, without asking whether its signatures are enough.
  ///
  /// - Throws: ``DocumentFault``.
  public init(
    _ entry: JSONValue, registry: String, epoch: Int64
  ) throws(DocumentFault) {
    guard let json = entry.objectValue?["keySet"]?.objectValue else { throw .member("keySet") }
    keySet = try KeySet(json, registry: registry, epoch: epoch, crypto: PlatformRegistryCrypto())
    signatures = try DocumentSignature.list(entry.objectValue?["signatures"], "signatures")
  }

  /// The entry of `keySets`.
  public var json: JSONValue { keySet.entry(signedBy: signatures) }

  /// Signs the set; a signature that the key made before is replaced.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` where the key does not add up.
  public mutating func sign(with key: TrustSigningKey) throws(SigningKeyError) {
    let signature = try key.signature(.keySet, over: keySet.json)
    signatures.removeAll { $0.keyID.utf8.elementsEqual(signature.keyID.utf8) }
    signatures.append(signature)
  }

  /// Adds the signatures of other keys from a copy of the same set.
  mutating func unite(with copy: SignedKeySet) {
    signatures += copy.signatures.filter { other in
      !signatures.contains { $0.keyID.utf8.elementsEqual(other.keyID.utf8) }
    }
  }

  /// Whose signatures of this role are valid.
  public func signers(of role: KeyRole) -> [RoleKey] {
    let message = keySet.signedBytes
    return role.keys.filter { key in
      (try? KeyRole(keys: [key], threshold: 1))?.isMet(by: signatures, over: message) ?? false
    }
  }
}
