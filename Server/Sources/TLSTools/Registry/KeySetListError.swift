import SslPinningPlatform
import SslPinningRules

/// What is wrong with a chain of key sets.
public enum KeySetListError: Error, Equatable, Sendable {
  /// Not the array of a chain, or an empty one.
  case notKeySets
  /// The set of this epoch cannot be read.
  case invalid(epoch: Int64, DocumentFault)
  /// A set that another is to follow lacks signatures.
  case incomplete(KeySetList.Shortage)
  /// The key must not sign the set of this epoch.
  case notARootKey(SPKIPin, epoch: Int64)
  /// The key cannot sign.
  case signing(SigningKeyError)
}

extension KeySetListError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notKeySets: "no key sets; hint: ssl-pinning keys sign-set makes them"
    case .invalid(let epoch, let fault): "key set \(epoch) is invalid: \(fault)"
    case .incomplete(let shortage):
      "\(shortage); hint: let its root keys sign first, ssl-pinning keys sign-set"
    case .notARootKey(let id, let epoch):
      "key \(id) is no root key of key set \(epoch)\(epoch > 1 ? " or \(epoch - 1)" : "")"
    case .signing(let error): "\(error)"
    }
  }
}

extension KeySetList.Shortage: CustomStringConvertible {
  public var description: String {
    "key set \(epoch) has \(signatures) of \(threshold) signatures of the root of key set \(root)"
  }
}

extension KeySetListError: ExplainedError {}
