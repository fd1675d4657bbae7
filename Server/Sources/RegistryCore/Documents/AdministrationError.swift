import SslPinningRules

/// Why a change that somebody asked for was not made. Nothing of it was.
public enum AdministrationError: Error, Equatable, Sendable {
  /// No document of this name is configured.
  case noSuchDocument(String)
  /// The document has no such endpoint, but those that are known.
  case noSuchEndpoint(String, known: [String] = [])
  /// The endpoint is there already, or was taken out and is to be brought back by adding it.
  case endpointExists(String)
  /// The endpoint has no such key in the state that the change needs.
  case noSuchKey(SPKIPin, KeyState?)
  /// The key is published for the endpoint already.
  case keyExists(SPKIPin)
  /// The key is denied.
  case keyDenied(SPKIPin)
  /// Hosts would be left without a key that their servers show; `force` does it all the same. Whether
  /// each of them has a staged key, which no probe has seen its server show yet.
  case leavesWithoutPin([String], areStaged: Bool = false)
  /// The key stands above a published one in the last validated path of a place of these hosts, so that clients would
  /// refuse every connection there; `force` does it all the same.
  case locksOut([String])
  /// The document would be left without an entry.
  case wouldBeEmpty
  /// The store did not take it; whether it was made is to be read again.
  case notStored(String)
}

extension AdministrationError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noSuchDocument(let file): "no document \(file) is configured"
    case .noSuchEndpoint(let id, known: []): "no endpoint \(id)"
    case .noSuchEndpoint(let id, let known):
      "no endpoint \(id); hint: the document has \(known.prefix(5).joined(separator: ", "))"
        + (known.count > 5 ? " and \(known.count - 5) more" : "")
    case .endpointExists(let id): "\(id) is watched already"
    case .noSuchKey(let pin, nil): "no key \(pin.base64)"
    case .noSuchKey(let pin, let state?): "no \(state.rawValue) key \(pin.base64)"
    case .keyExists(let pin): "\(pin.base64) is published already"
    case .keyDenied(let pin): "\(pin.base64) is denied; hint: allow it first"
    case .leavesWithoutPin(let hosts, let areStaged):
      "no key that these hosts' servers show would be left: \(hosts.joined(separator: ", "))"
        + (areStaged
          ? "; hint: the next key is staged and was not seen yet: switch the servers to it, and wait"
            + " for the next probe"
          : "; hint: stage the next key first, or force it")
    case .locksOut(let hosts):
      "the key stands above the leaf in the paths of these hosts, and clients would refuse every connection there:"
        + " \(hosts.joined(separator: ", ")); hint: move their servers to another CA first, or force it"
    case .wouldBeEmpty: "the document would be empty; hint: add another endpoint first"
    case .notStored(let reason): "the change is not stored: \(reason)"
    }
  }
}
