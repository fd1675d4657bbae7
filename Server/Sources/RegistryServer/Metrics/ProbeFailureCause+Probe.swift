import RegistryCore
import TLSTools

extension ProbeFailureCause {
  /// The cause of a probe's failure.
  init(_ error: ProbeError) {
    switch error {
    case .dns: self = .dns
    case .refused: self = .refused
    case .unreachable, .proxy: self = .unreachable
    case .timeout: self = .timeout
    case .notTLS, .handshake: self = .handshake
    case .invalidTarget, .cancelled, .local: self = .other
    }
  }
}
