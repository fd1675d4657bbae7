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
