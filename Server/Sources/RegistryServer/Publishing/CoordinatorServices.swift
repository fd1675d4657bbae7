import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// What the coordinators of one server share.
struct CoordinatorServices: Sendable {
  /// Replaced when keys or key sets are read again.
  let signing: Locked<DocumentSigner>
  let store: any RegistryStore
  let published: PublishedDocuments
  let health: ServiceHealth
  let log: ServerLog
  /// Where probes and documents are counted.
  var metrics: ServerMetrics?
  /// Whether the time is known to be right: then a statement of a time to come may be taken back.
  var isClockConfirmed: @Sendable () -> Bool = { false }
  /// What is served while the store is not believed; `nil` serves nothing then.
  var copies: LastCopies?
  /// Tells a sudden change of all endpoints, whatever their documents.
  let gauge = Locked(MassChangeDetector())
  /// What all documents deny.
  let denials = Locked(SharedDenials())

  /// Signs by the keys in force.
  var signer: DocumentSigner { signing.withLock { $0 } }
}

/// Why a change is not published.
enum KeeperFailure: Error, CustomStringConvertible {
  case store(StoreError)
  case signing(SigningProblem)

  /// What kind of alert it is for as long as it lasts.
  var alert: ServerAlert.Kind {
    switch self {
    case .store(.seal(let fault)): fault.alert
    case .store: .storing
    case .signing: .signing
    }
  }

  var description: String {
    switch self {
    case .store(let error): error.description
    case .signing(let problem): problem.description
    }
  }
}
