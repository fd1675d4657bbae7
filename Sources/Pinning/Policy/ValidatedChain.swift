/// Proof that a chain was validated: a path to an anchor of the trust mode exists, it is valid at
/// the time of the handshake, and its leaf is for ``host``.
///
/// - Only this package's validators make one (the initializer is not public), so a policy cannot be
///   asked about a chain that nobody judged.
/// - ``path`` is what was *validated*, leaf first and anchor last, never what was merely sent.
public struct ValidatedChain: Hashable, Sendable {
  /// The host that the leaf's names were checked against.
  public let host: HostName
  /// The pin of every certificate on the validated path: leaf first, anchor last; never empty.
  public let path: [SPKIPin]

  /// For a validator that has checked path, dates and host name.
  ///
  /// - Returns: `nil` for an empty path.
  package init?(host: HostName, path: [SPKIPin]) {
    guard !path.isEmpty else { return nil }
    self.host = host
    self.path = path
  }
}
