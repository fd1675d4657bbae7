/// What is known of the other side of one connection when its pins are judged.
public struct ChainEvidence: Hashable, Sendable {
  /// The pins of the certificates as the server sent them, leaf first. For telling, and for
  /// ``TrustMode/pinnedKeysOnly``; never matched otherwise.
  public let presented: [SPKIPin]
  /// The validated chain, or why there is none.
  public let validation: Result<ValidatedChain, ChainFault>

  /// Evidence of a connection whose chain was validated or not.
  package init(presented: [SPKIPin], validation: Result<ValidatedChain, ChainFault>) {
    self.presented = presented
    self.validation = validation
  }
}

extension ChainFault: Error {}

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

/// Why a chain was not accepted before any pin was looked at.
public enum ChainFault: Hashable, Sendable {
  /// No valid path to a trust anchor: the validator's own code and text.
  case untrusted(code: Int, reason: String)
  /// A path to a trust anchor is there, and its dates hold at none of the times that the client knows
  /// (`TrustTime`). `mayBeEarly`: a certificate is not valid *yet* at one of them, so a newer registry,
  /// which brings a later time, may make it valid.
  case outOfDate(code: Int, reason: String, mayBeEarly: Bool)
  /// The path is valid, and the certificate is for other names.
  case wrongHost
  /// The server sent nothing that can be read as a certificate.
  case unreadable(String)
}

extension ChainFault {
  /// Whether a certificate is not valid yet by one of the times that the client knows.
  package var isEarly: Bool {
    if case .outOfDate(_, _, mayBeEarly: true) = self { true } else { false }
  }
}

extension ChainFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .untrusted(_, let reason), .outOfDate(_, let reason, _): reason
    case .wrongHost: "the certificate is for other host names"
    case .unreadable(let reason): reason
    }
  }
}

extension ChainFault {
  /// Whether the path ends at nobody who is trusted, and nothing else is said to be wrong: what a
  /// server of one's own CA looks like, and a man in the middle, too. Never for dates and names.
  ///
  /// OpenSSL's X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, _DEPTH_ZERO_SELF_SIGNED_CERT,
  /// _SELF_SIGNED_CERT_IN_CHAIN, _UNABLE_TO_GET_ISSUER_CERT_LOCALLY and
  /// _UNABLE_TO_VERIFY_LEAF_SIGNATURE; Security's errSecNotTrusted.
  public var lacksAnchor: Bool {
    guard case .untrusted(let code, _) = self else { return false }
    return [2, 18, 19, 20, 21, -67843].contains(code)
  }
}
