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

  /// The fingerprint of every certificate on that path, in the same order; empty where the
  /// validator takes none, and then no whole certificate matches.
  public let certificates: [CertificateFingerprint]

  /// For a validator that has checked path, dates and host name.
  ///
  /// - Returns: `nil` for an empty path, and where there are fingerprints of another number.
  package init?(
    host: HostName, path: [SPKIPin], certificates: [CertificateFingerprint] = []
  ) {
    guard !path.isEmpty, certificates.isEmpty || certificates.count == path.count else {
      return nil
    }
    self.certificates = certificates
    self.host = host
    self.path = path
  }
}
