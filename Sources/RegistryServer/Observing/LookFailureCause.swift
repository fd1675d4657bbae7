import TLSTools

/// Why a look did not show a key that can be believed; the label `cause`.
public enum LookFailureCause: String, CaseIterable, Sendable, Hashable {
  /// The name has no address.
  case dns
  /// No connection came about.
  case connect
  /// The time was up.
  case timeout
  /// What answered did not get through a TLS handshake.
  case handshake
  /// The chain ends in no anchor, or is not valid now.
  case chain
  /// The certificate is for another name.
  case name
  /// Vantage points, or addresses, showed different things.
  case disagreement
  /// This server could not do its part.
  case other

  /// The cause of a probe's failure.
  init(_ error: ProbeError) {
    switch error {
    case .dns: self = .dns
    case .refused, .unreachable, .proxy: self = .connect
    case .timeout: self = .timeout
    case .notTLS, .handshake: self = .handshake
    case .invalidTarget, .cancelled, .local: self = .other
    }
  }

  /// Why what a probe saw is not believed; `nil` where it is.
  ///
  /// A bad chain for another name counts as the chain: that is what has to be mended first.
  init?(_ result: ProbeResult) {
    if result.isTrusted { return nil }
    self = result.verification.isGood && !result.nameMatches ? .name : .chain
  }
}
