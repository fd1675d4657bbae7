/// Why a policy contradicts itself.
public enum PolicyError: Error, Equatable, Sendable {
  /// CA pins beside ``TrustMode/pinnedKeysOnly``: without a validated path there is no CA to match.
  case caPinsWithoutPath(HostPattern)
  /// Whole certificates beside ``TrustMode/pinnedKeysOnly``, under which the leaf's key is all.
  case certificatesWithoutPath(HostPattern)
  /// Report-only beside ``TrustMode/pinnedKeysOnly``: every server would be accepted. For these hosts;
  /// `nil`: for all of them.
  case reportOnlyWithoutPath(HostPattern?)
  /// ``UnlistedHosts/systemTrust`` beside ``TrustMode/pinnedKeysOnly``.
  case unlistedHostsWithoutPath
}

extension PolicyError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .caPinsWithoutPath(let pattern):
      "\(pattern) has CA pins, but pinnedKeysOnly validates no path; hint: use leaf pins or anchors"
    case .certificatesWithoutPath(let pattern):
      "\(pattern) has whole certificates, but pinnedKeysOnly knows keys alone; hint: use anchors"
    case .reportOnlyWithoutPath(let pattern):
      "\(pattern?.description ?? "every host") is report-only, but under pinnedKeysOnly nothing else"
        + " protects it; hint: enforce"
    case .unlistedHostsWithoutPath:
      "unlisted hosts cannot use system trust under pinnedKeysOnly"
    }
  }
}
