import RegistryCore
import SslPinningRules

/// A change that an administrator asks for.
enum AdministrationCommand: Sendable {
  /// Watch one more endpoint, or again one that was taken out.
  case add(file: String, WatchedEndpoint)
  /// Change how an endpoint is watched; `nil` leaves a setting as it is.
  case change(file: String, id: String, interval: Int64?, approval: ApprovalMode?, isPaused: Bool?)
  /// Take an endpoint out.
  case remove(file: String, id: String)
  /// Publish a key ahead of its use.
  case stage(file: String, id: String, SPKIPin)
  /// Publish a key that is held.
  case approve(file: String, id: String, SPKIPin)
  /// Publish a key no more.
  case revoke(file: String, id: String, SPKIPin, force: Bool)
  /// Deny a key wherever it stands, in every document.
  case deny(SPKIPin, force: Bool)
  /// Deny a key no more.
  case allow(SPKIPin)

  /// Whether other endpoints are watched afterwards, or otherwise.
  var changesWatching: Bool {
    switch self {
    case .add, .change, .remove: true
    case .stage, .approve, .revoke, .deny, .allow: false
    }
  }

  /// The document that it is about; `nil` where it is about all of them.
  var file: String? {
    switch self {
    case .add(let file, _), .change(let file, _, _, _, _), .remove(let file, _),
      .stage(let file, _, _), .approve(let file, _, _), .revoke(let file, _, _, _):
      file
    case .deny, .allow: nil
    }
  }
}
