/// Who vouches for a server before its pins are looked at.
public enum TrustMode: Hashable, Sendable {
  /// The anchors of the system. Pins only tighten what the system accepts.
  case system
  /// One's own certification authorities, as DER certificates; with or without the system's.
  ///
  /// An empty list without the system's anchors means that nothing is trusted: every server is
  /// refused.
  case anchors([[UInt8]], andSystem: Bool = false)
  /// No CA vouches for the servers: the leaf pin alone decides.
  ///
  /// - Warning: names, dates and paths are not checked. Anyone who holds a pinned key may use it
  ///   for every host it is pinned for, for ever. For devices with self-signed certificates.
  case pinnedKeysOnly
}

extension TrustMode {
  /// Whether an app's settings make sense beside this mode, whatever a list says.
  ///
  /// - Throws: ``PolicyError/unlistedHostsWithoutPath`` and ``PolicyError/reportOnlyWithoutPath(_:)``.
  package func check(
    unlistedHosts: UnlistedHosts, enforcement: PolicyEntry.Enforcement = .enforce
  ) throws(PolicyError) {
    guard self == .pinnedKeysOnly else { return }
    guard unlistedHosts == .refuse else { throw .unlistedHostsWithoutPath }
    guard enforcement == .enforce else { throw .reportOnlyWithoutPath(nil) }
  }
}
