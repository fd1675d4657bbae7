import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// Why the seals of a store were left as they are.
public enum StoreRepairError: Error, Equatable, Sendable {
  /// The id that was said is not that of `prv.pem`.
  case otherKey(own: SPKIPin)
  /// The store has no seal.
  case unsealed
  /// No key here verifies what was sealed under this one.
  case unverifiable(SPKIPin)
  /// No document of this name is configured.
  case noSuchDocument(String)
  /// There is no record to take, or none that can be read.
  case gone(String)
  /// The store has documents, so it is no new one.
  case identityIsTaken
  /// The store.
  case store(StoreError)
}

extension StoreRepairError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherKey(let own): "prv.pem is \(own.base64); hint: is it the one that you mean?"
    case .unsealed:
      "the store has no seal; hint: ssl-pinning up gives it one, unless it had one before"
    case .unverifiable(let key):
      "the store is sealed under \(key.base64), and nothing here can verify that; hint: put the key before"
        + " beside prv.pem as prv.old.pem or, if it is lost, --unverified believes what the store has"
    case .noSuchDocument(let name):
      "no document \(name) is configured; hint: the file's name, as in keys, or .store"
    case .gone(let name): "\(name) has no record that can be read; hint: --anew"
    case .identityIsTaken:
      "the store has documents, so it is no new one; hint: --take"
    case .store(let error): error.description
    }
  }
}

extension StoreRepairError: ExplainedError {}
