import CanonicalJSON
import RegistryCore
import SslPinningRules

/// What a document is to say, before it is signed.
struct DocumentContent: Sendable, Equatable {
  var entries: [DocumentEntry]
  var denied: [SPKIPin] = []
  var removed: [HostPattern] = []
  var mirrors: [RegistryMirror] = []

  /// What a state amounts to.
  init(
    _ state: DocumentState, endpoints: [WatchedEndpoint], mirrors: [RegistryMirror] = []
  ) {
    entries = DocumentEntry.entries(of: endpoints, state: state)
    denied = state.denied.map(\.pin)
    removed = state.removed
    self.mirrors = mirrors
  }

  /// Whether a document says just this.
  func isSaid(by bytes: [UInt8]) -> Bool {
    guard let document = (try? JSONValue(parsing: bytes))?.objectValue,
      let keys = document["payload"]?.objectValue?["keys"]?.arrayValue,
      keys.count == entries.count,
      let expires = keys.first?.objectValue?["expire"]?.integerValue,
      zip(keys, entries).allSatisfy({ $0 == $1.json(expires: expires) })
    else { return false }
    guard let statement = document["statement"]?.objectValue else {
      return denied.isEmpty && removed.isEmpty && mirrors.isEmpty
    }
    return statement["denied"]?.arrayValue == denied.map { .string($0.base64) }
      && statement["removed"]?.arrayValue == removed.map { .string($0.description) }
      && statement["mirrors"]?.arrayValue ?? [] == mirrors.map { .string($0.description) }
  }
}
