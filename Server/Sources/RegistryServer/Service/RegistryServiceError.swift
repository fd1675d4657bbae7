import HTTPServing
import RegistryStores
import SslPinningPlatform

/// Why the server does not start.
public enum RegistryServiceError: Error, Sendable {
  /// The signing key.
  case signer(DocumentSignerError)
  /// The anchors that endpoints are to be judged by.
  case anchors(AnchorsError)
  /// The store.
  case store(StoreError)
  /// The address.
  case listening(HTTPServerError)
  /// It was started before.
  case alreadyStarted
}

extension RegistryServiceError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .signer(let error): error.description
    case .anchors(let error): error.description
    case .store(let error): error.description
    case .listening(let error): error.description
    case .alreadyStarted: "the server was started before"
    }
  }
}

extension RegistryServiceError: ExplainedError {}
