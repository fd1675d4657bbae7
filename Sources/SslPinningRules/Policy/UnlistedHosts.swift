/// What a pinned session does with a host that no entry speaks of.
public enum UnlistedHosts: Hashable, Sendable {
  /// Refuse it. The default: an attacker who can name a host of his own gains nothing.
  case refuse
  /// Accept it where the chain and the host name are valid.
  ///
  /// - Warning: a redirect or a typing error leads to servers that any CA can vouch for.
  case systemTrust
}
