import CanonicalJSON

/// Why a policy contradicts itself.
public enum PolicyError: Error, Equatable, Sendable {
  /// CA pins beside ``TrustMode/pinnedKeysOnly``: without a validated path there is no CA to match.
  case caPinsWithoutPath(HostPattern)
  /// Whole certificates beside ``TrustMode/pinnedKeysOnly``, which checks only the leaf's key.
  case certificatesWithoutPath(HostPattern)
  /// Report-only beside ``TrustMode/pinnedKeysOnly``: every server would be accepted, for these hosts or, if
  /// `nil`, for all.
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

/// Something in a signed registry that could not be used. Reported, never fatal: one bad entry does not
/// affect the others.
public enum RegistryProblem: Hashable, Sendable {
  /// The entry at this index is not an object, or has no `domainName`.
  case unreadableEntry(index: Int)
  /// The entry's host cannot be read; the entry is skipped.
  case unreadableHost(index: Int, HostNameError)
  /// The entry's pin cannot be read; its host stays listed.
  case unreadablePin(index: Int, HostPattern, PinSyntaxError)
  /// The entry has no `key` text; its host stays listed.
  case missingPin(index: Int, HostPattern)
  /// `expire` is not a number, or is relative without a `date` to count from: the key never expires.
  case unreadableExpiry(index: Int, HostPattern)
  /// The host was in an earlier document and is not in this one, since this Unix time in seconds. It keeps its
  /// last pins, unless another listed pattern matches it.
  case vanished(HostPattern, since: Int64)
  /// The hosts require a pin of this role, which the app's ``TrustMode/pinnedKeysOnly`` cannot check: they
  /// are refused.
  case uncheckable(HostPattern, PinEvaluation.PinRole)
  /// The hosts require these, which this version of the client does not know: they are refused.
  case unknownDemands(HostPattern, [String])

  /// How many of a kind are told. A thief of the online key has room for millions of entries that cannot be read. Each is a
  /// problem many times larger than itself, and a process that dies of them could not be healed.
  package static let most = 1000
}

extension RegistryProblem: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadableEntry(let index): "entry \(index) is not an object with a domainName"
    case .unreadableHost(let index, let error): "entry \(index): \(error)"
    case .unreadablePin(let index, let pattern, let error):
      "entry \(index): the pin of \(pattern) cannot be read: \(error)"
    case .missingPin(let index, let pattern): "entry \(index): \(pattern) has no key"
    case .unreadableExpiry(let index, let pattern):
      "entry \(index): the expiry of \(pattern) cannot be read; the key does not expire"
    case .vanished(let pattern, let since):
      "\(pattern) vanished from the registry on \(RFC3339.text(since)) and keeps its last pins,"
        + " unless another listed pattern matches it"
    case .uncheckable(let pattern, let role):
      "\(pattern) demands \(role), which pinnedKeysOnly cannot check: its hosts are refused;"
        + " hint: list leaf pins alone"
    case .unknownDemands(let pattern, let names):
      "\(pattern) demands what this version does not know: its hosts are refused"
        + " (\(ForeignText.list(names))); hint: update the app"
    }
  }
}
