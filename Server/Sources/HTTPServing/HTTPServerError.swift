import SslPinningPlatform

/// Why the server does not listen.
public enum HTTPServerError: Error, Equatable, Sendable {
  /// Another program has the port.
  case addressInUse(ListenAddress)
  /// The port is reserved (below 1024, as a rule).
  case notPermitted(ListenAddress)
  /// This machine does not have the address.
  case noSuchAddress(ListenAddress)
  /// The listener's certificate or key cannot be used; `reason` says why and never what is in them.
  case certificate(reason: String)
  /// A system call failed; `reason` is the system's.
  case system(operation: String, reason: String)
}

extension HTTPServerError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .addressInUse(let address):
      "\(address) is in use; hint: is another server running? set server.listen to another port"
    case .notPermitted(let address):
      "listening on \(address) is not permitted; hint: set server.listen to a port above 1023"
    case .noSuchAddress(let address):
      "this machine does not have the address of \(address); hint: set server.listen"
    case .certificate(let reason):
      "the listener's certificate cannot be used: \(reason); "
        + "hint: two PEM files, the certificate with its chain and its own key"
    case .system(let operation, let reason): "\(operation) failed: \(reason)"
    }
  }
}

extension HTTPServerError: ExplainedError {}
