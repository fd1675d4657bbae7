import SslPinningRules

/// Why a document could not be fetched.
public enum FetchError: Error, Hashable, Sendable {
  /// The task that asked was cancelled.
  case cancelled
  /// No answer: name, connection, TLS or time-out, in the transport's words.
  case unreachable(String)
  /// The server's certificate is not valid yet by the device's clock (Unix seconds), and no statement that
  /// the client believes vouches for a later time: most likely the clock is behind.
  case notYetValid(clock: Int64)
  /// An answer with this HTTP status; and the seconds after which the server wants to be asked
  /// again, where it said so (`Retry-After`, RFC 9110 §10.2.3).
  case status(Int, retryAfter: Double? = nil)
  /// The body is larger than the limit, in bytes.
  case tooLarge(limit: Int)
}

extension FetchError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cancelled: "the request was cancelled"
    case .unreachable(let reason): "no answer: \(reason)"
    case .notYetValid(let clock):
      "the server's certificate is not valid yet, by a clock that says \(RFC3339.text(clock)); "
        + "hint: is the device's clock behind?"
    case .status(let code, _): "the server answered with status \(code)"
    case .tooLarge(let limit): "the body is larger than \(limit) bytes"
    }
  }
}
