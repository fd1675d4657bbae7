/// Which of the two sessions a request goes over.
enum SessionKind: Sendable {
  /// The server's key must be on the signed list.
  case pinned
  /// Every CA that the system trusts can vouch for the server, which must not be on the list.
  case plain

  var name: String {
    switch self {
    case .pinned: "pinned session"
    case .plain: "plain session"
    }
  }
}
