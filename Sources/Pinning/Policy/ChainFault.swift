/// Why a chain was not accepted before any pin was looked at.
public enum ChainFault: Hashable, Sendable {
  /// No valid path to a trust anchor: the validator's own code and text.
  case untrusted(code: Int, reason: String)
  /// The path is valid, and the certificate is for other names.
  case wrongHost
  /// The server sent nothing that can be read as a certificate.
  case unreadable(String)
}

extension ChainFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .untrusted(_, let reason): reason
    case .wrongHost: "the certificate is for other host names"
    case .unreadable(let reason): reason
    }
  }
}
