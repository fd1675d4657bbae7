import SslPinningPlatform

/// Why a token is not made, or does not count.
public enum AdminTokenError: Error, Equatable, Sendable {
  /// It is not three parts of base64url, or does not say what a token says.
  case malformed
  /// Its header asks for another kind of check than the only one.
  case algorithm
  /// Somebody without the key made it, or the key was changed since.
  case signature
  /// It is for something else.
  case audience
  /// It is valid in the future.
  case notYetValid
  /// It was valid in the past.
  case expired
  /// The name is empty, too long, or has other characters than letters, digits and `._@-`.
  case name
  /// It ends before it begins, or lasts longer than 3660 days.
  case times
  /// No key can be made to sign it with.
  case key(String)
}

extension AdminTokenError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformed: "this is no token; hint: ssl-pinning token prints one"
    case .algorithm:
      "the token is of a kind that is not used here; hint: ssl-pinning token prints one"
    case .signature:
      "the token is not of this server; hint: ssl-pinning token prints one, given the same configuration"
    case .audience: "the token is for something else; hint: ssl-pinning token prints one"
    case .notYetValid: "the token is not valid yet; hint: compare the clocks"
    case .expired: "the token has expired; hint: ssl-pinning token prints another"
    case .name: "a name has 1 to 64 letters, digits, '.', '_', '@' and '-'"
    case .times: "a token is valid from 1 second to 3660 days"
    case .key(let reason): "no token can be signed: \(reason)"
    }
  }
}

extension AdminTokenError: ExplainedError {}
