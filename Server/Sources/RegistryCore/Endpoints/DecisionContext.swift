import SslPinningRules

/// What a decision takes into account beside the endpoint's own past.
public struct DecisionContext: Sendable {
  /// Whether the hosts that the endpoint speaks of have published keys of other endpoints: then its
  /// first key joins a list, and must be confirmed as if it had changed.
  public var isListed = false
  /// Which of the keys that were just seen those endpoints have: one of these is no new key for the hosts.
  public var listedPins: Set<SPKIPin> = []
  /// Under which of the CAs that were just seen those endpoints' keys are.
  public var listedAuthorities: Set<SPKIPin> = []
  /// Who decides about a new key.
  public var approval = ApprovalMode.automatic
  /// Who probes: the vantage points that are configured, and this server itself.
  public var vantages: Set<String> = [ProbeObservation.direct]
  /// How many of them settle something.
  public var quorum = DecisionContext.quorum(of: 0)
  /// Whether the endpoint shows each region a key of its own.
  public var isUnion = false
  /// The CAs that the operator named beforehand, by their keys.
  public var issuers: Set<SPKIPin> = []
  /// Keys that are never published.
  public var denied: Set<SPKIPin> = []
  /// Whether too many endpoints changed at once, where that is a reason to hold a key.
  public var isMassChange = false

  /// Nothing out of the ordinary.
  public init() {}

  /// How many have to agree where the operator does not say: half of them all, and two at least. One
  /// alone is this server, and whoever stands before it.
  public static func quorum(of vantagePoints: Int) -> Int { max(2, (vantagePoints + 1) / 2) }

  /// Whether a key waits because others are shown: a quorum of vantage points answers with other keys alone, or
  /// this server does and no quorum sees the key. Silence says nothing: whoever cuts the vantage points off, or
  /// a vantage point that is down, holds no key.
  ///
  /// - Parameters:
  ///   - others: who answers, and was shown other keys alone.
  ///   - witnesses: who saw the key.
  func isOutvoted(by others: Set<String>, against witnesses: Set<String>) -> Bool {
    let points = vantages.count - 1
    let needed = min(quorum, points)
    guard points > 0, !isUnion else { return false }
    return others.count >= needed
      || others.contains(ProbeObservation.direct) && witnesses.count < needed
  }
}
