import Pinning
import PinningPlatform

/// What the keepers of one server share.
struct KeeperServices: Sendable {
  let signer: DocumentSigner
  let store: any RegistryStore
  let published: PublishedDocuments
  let health: ServiceHealth
  let log: ServerLog
  /// Tells a sudden change of all endpoints, whatever their documents.
  let gauge = Locked(ChangeGauge())
}

/// Why a change is not published.
enum KeeperFailure: Error, CustomStringConvertible {
  case store(StoreError)
  case signing(SigningProblem)

  var description: String {
    switch self {
    case .store(let error): error.description
    case .signing(let problem): problem.description
    }
  }
}
