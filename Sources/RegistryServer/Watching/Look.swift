import Pinning

/// What one look at an endpoint showed.
public enum Look: Sendable, Hashable {
  /// The chain was valid, the name was right, and the leaf had this key.
  case accepted(SPKIPin)
  /// The endpoint answered with a chain that proves nothing: expired, self-signed, from an unknown
  /// issuer, for another name. `presented` is the leaf's pin where it could be read; it is told and
  /// never published.
  case refused(reason: String, presented: SPKIPin?)
  /// The endpoint could not be asked: no address, no connection, no handshake in time.
  case unreachable(reason: String)
}

/// Looks at endpoints. The server's own one connects over TLS; tests script theirs.
public protocol EndpointObserver: Sendable {
  /// Looks once, within the configured time.
  func look(at endpoint: WatchedEndpoint) async -> Look
}
