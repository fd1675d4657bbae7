import RegistryCore
import SslPinningRules

/// A change that an administrator asks for.
enum AdministrationCommand: Sendable {
  /// Watch one more endpoint, or again one that was taken out.
  case add(file: String, WatchedEndpoint)
  /// Change how an endpoint is watched; `nil` leaves a setting as it is.
  case change(file: String, id: String, interval: Int64?, approval: ApprovalMode?, isPaused: Bool?)
  /// Have clients ask for other terms at an endpoint's hosts.
  case setTerms(file: String, id: String, HostTerms.Change, force: Bool)
  /// Take an endpoint out.
  case remove(file: String, id: String)
  /// Publish a key ahead of its use, as far as a scope goes.
  case stage(file: String, id: String, SPKIPin, by: AdminScope)
  /// Publish a key that is held.
  case approve(file: String, id: String, SPKIPin)
  /// Publish a key no more.
  case revoke(file: String, id: String, SPKIPin, force: Bool)
  /// Deny a key wherever it stands, in every document.
  case deny(SPKIPin, force: Bool)
  /// Deny a key no more.
  case allow(SPKIPin)
  /// Decide about many held keys at once.
  case decide(HeldDecision)

  /// Whether other endpoints are watched afterwards, or otherwise.
  var changesWatching: Bool {
    switch self {
    case .add, .change, .setTerms, .remove: true
    case .stage, .approve, .revoke, .deny, .allow, .decide: false
    }
  }

  /// The document that it is about; `nil` where it is about all of them.
  var file: String? {
    switch self {
    case .add(let file, _), .change(let file, _, _, _, _), .remove(let file, _),
      .setTerms(let file, _, _, _),
      .stage(let file, _, _, _), .approve(let file, _, _), .revoke(let file, _, _, _):
      file
    case .deny, .allow, .decide: nil
    }
  }

  /// Whether it changes a document of this name.
  func concerns(_ file: String) -> Bool {
    if case .decide(let decision) = self { return decision.concerns(file) }
    return self.file == nil || self.file == file
  }

  /// The keys that it denies.
  var deniedPins: Set<SPKIPin> {
    switch self {
    case .deny(let pin, _): [pin]
    case .decide(let decision) where decision.verdict != .approve: Set(decision.keys.map(\.pin))
    default: []
    }
  }

  /// What a forced denial would be without force; `nil` for all else.
  var unforced: AdministrationCommand? {
    switch self {
    case .deny(let pin, force: true): .deny(pin, force: false)
    case .decide(let decision) where decision.verdict == .deny(force: true):
      .decide(HeldDecision(.deny(force: false), decision.keys))
    default: nil
    }
  }
}
