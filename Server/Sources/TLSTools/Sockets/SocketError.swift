import Foundation
import SslPinningPlatform

/// Why a socket could not be made, bound or connected, or a stream of bytes ended.
public enum SocketError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A system call failed; `code` is its errno.
  case system(operation: String, code: Int32)
  /// The text is no numeric IP address.
  case notAnAddress(String)
  /// The time was up first.
  case timeout
  /// The server or proxy that owns the stream was stopped.
  case stopped
  /// The other side closed the stream, or the TLS library gave up on it.
  case closed(reason: String)

  public var description: String {
    switch self {
    case .system(let operation, let code): "\(operation): \(String(cString: strerror(code)))"
    case .notAnAddress(let text): "'\(text)' is no numeric IP address"
    case .timeout: "the time was up"
    case .stopped: "stopped"
    case .closed(let reason): "closed: \(reason)"
    }
  }
}

extension SocketError: ExplainedError {}
