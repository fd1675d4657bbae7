/// Why a probe did not show a key that can be believed; the label `cause`.
public enum ProbeFailureCause: String, CaseIterable, Sendable, Hashable {
  /// The name has no address.
  case dns
  /// Nobody listens there.
  case refused
  /// There is no way there, also from a vantage point.
  case unreachable
  /// The time was up.
  case timeout
  /// What answered did not get through a TLS handshake.
  case handshake
  /// The chain ends in no anchor, or is not valid now.
  case chain
  /// The certificate is for another name.
  case name
  /// The vantage point itself did not answer, or did not prove itself; the endpoint was never asked.
  case vantage
  /// Vantage points, or addresses, showed different things.
  case disagreement
  /// This server could not do its part.
  case other
}
