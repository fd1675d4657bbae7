import SslPinningRules

/// What a decision takes into account beside the endpoint's own past.
public struct DecisionContext: Sendable {
  /// Whether the hosts that the endpoint speaks of have published keys of other endpoints: then its
  /// first key joins a list, and must be confirmed as if it had changed.
  public var isListed = false
  /// Who decides about a new key.
  public var approval = ApprovalMode.automatic
  /// Who looks: the vantage points that are configured, and this server itself.
  public var vantages: Set<String> = [Observation.direct]
  /// How many of them settle something.
  public var quorum = DecisionContext.quorum(of: 0)
  /// Whether the endpoint shows each region a key of its own.
  public var isUnion = false
  /// The CAs that the operator named beforehand, by their keys.
  public var issuers: Set<SPKIPin> = []
  /// Keys that are never published.
  public var denied: Set<SPKIPin> = []
  /// Whether too many endpoints changed at once, where that is a reason to hold a key.
  public var isSudden = false

  /// Nothing out of the ordinary.
  public init() {}

  /// How many have to agree where the operator does not say: half of them all, and two at least. One
  /// alone is this server, and whoever stands before it.
  public static func quorum(of vantagePoints: Int) -> Int { max(2, (vantagePoints + 1) / 2) }

  /// Whether so many answered with other keys alone that a key waits. Silence says nothing: whoever cuts
  /// the vantage points off, or a vantage point that is down, holds no key.
  func isOutvoted(by others: Int) -> Bool {
    let points = vantages.count - 1
    return points > 0 && !isUnion && others >= min(quorum, points)
  }
}
