/// What is known about the other side of a connection when its pins are evaluated.
public struct ChainEvidence: Hashable, Sendable {
  /// The pins of the certificates as the server sent them, leaf first. Only for reports and for
  /// ``TrustMode/pinnedKeysOnly``; never matched otherwise.
  public let presented: [SPKIPin]
  /// The validated chain, or why there is none.
  public let validation: Result<ValidatedChain, ChainFault>

  /// Evidence about a connection.
  package init(presented: [SPKIPin], validation: Result<ValidatedChain, ChainFault>) {
    self.presented = presented
    self.validation = validation
  }
}

extension ChainFault: Error {}

/// Proof that a chain was validated: a path to an anchor of the trust mode exists, it is valid at
/// the time of the handshake, and its leaf covers ``host``.
///
/// - Only this package's validators make one (the initializer is not public), so a policy cannot be
///   asked about an unvalidated chain.
/// - ``path`` is what was *validated*, leaf first and anchor last, never what was merely sent.
public struct ValidatedChain: Hashable, Sendable {
  /// The host against which the leaf's names were checked.
  public let host: HostName
  /// The pin of every certificate on the validated path: leaf first, anchor last; never empty.
  public let path: [SPKIPin]

  /// The fingerprint of every certificate on that path, in the same order; empty if the validator computes
  /// none, and then no whole certificate matches.
  public let certificates: [CertificateFingerprint]

  /// Only for validators that have checked path, dates and host name.
  ///
  /// - Returns: `nil` for an empty path, or if the number of fingerprints differs.
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

/// Why a chain was refused before any pin was checked.
public enum ChainFault: Hashable, Sendable {
  /// No valid path to a trust anchor: the validator's own code and text.
  case untrusted(code: Int, reason: String)
  /// There is a path to a trust anchor, but it is not valid at any of the times that the client knows
  /// (`TrustTime`). `mayBeEarly`: at one of them a certificate is not valid *yet*, so a newer registry,
  /// which brings a later time, may make it valid.
  case outOfDate(code: Int, reason: String, mayBeEarly: Bool)
  /// The path is valid, but the certificate is for other names.
  case wrongHost
  /// The server sent no readable certificate.
  case unreadable(String)
}

extension ChainFault {
  /// Whether a certificate is not valid yet at one of the times that the client knows.
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
  /// Whether the only known fault is that the path does not end in a trusted anchor, as for a server of a
  /// private CA, or for a man in the middle. Never true for dates and names.
  ///
  /// OpenSSL's X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, _DEPTH_ZERO_SELF_SIGNED_CERT,
  /// _SELF_SIGNED_CERT_IN_CHAIN, _UNABLE_TO_GET_ISSUER_CERT_LOCALLY and
  /// _UNABLE_TO_VERIFY_LEAF_SIGNATURE; Security's errSecNotTrusted.
  public var lacksAnchor: Bool {
    guard case .untrusted(let code, _) = self else { return false }
    return [2, 18, 19, 20, 21, -67843].contains(code)
  }
}
