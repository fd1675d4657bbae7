import CanonicalJSON
import SslPinningRules

extension KeySet {
  /// The entry of `keySets`, signed by these keys: enough of the root of the set before and of this
  /// set's own root must be among them. Whether they are is the client's to judge, so that broken
  /// entries can be made.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` where a key does not add up.
  public func entry(signedBy keys: [TrustSigningKey]) throws(SigningKeyError) -> JSONValue {
    var signatures: [DocumentSignature] = []
    for key in keys { signatures.append(try key.signature(.keySet, over: json)) }
    return entry(signedBy: signatures)
  }
}
