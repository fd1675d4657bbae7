import SslPinningRules

/// A key that was seen and is not published. Times are Unix seconds.
public struct CandidateKey: Sendable, Hashable {
  /// Why a key that was seen often enough is not published by itself.
  public enum HoldReason: String, Sendable, Hashable, CaseIterable, Comparable {
    /// A quorum of vantage points answers and sees other keys, or this server does and no quorum sees it.
    case vantagePoints = "vantage-points"
    /// The CA behind it is neither known at this endpoint nor named, and no quorum vouches for it.
    case newIssuer = "new-issuer"
    /// Too many endpoints changed at once, no quorum vouches for it, and the operator asks for that.
    case massChange = "sudden-change"
    /// The endpoint's keys are approved by a person.
    case manual

    public static func < (left: HoldReason, right: HoldReason) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// What one vantage point saw of it.
  public struct Witness: Sendable, Hashable {
    /// How many of its probes showed it.
    public var probes: Int
    /// When it last saw it.
    public var lastSeen: Int64
  }

  /// When it was first seen.
  public internal(set) var firstSeen: Int64
  /// When it was last seen.
  public var lastSeen: Int64
  /// How many probes showed it.
  public var probes = 0
  /// Who saw it, by the vantage points' names.
  public var witnesses: [String: Witness] = [:]
  /// The validated path that last showed it.
  public var chain: SeenChain
  /// Why it is held, sorted; empty while it needs more probes.
  public var reasons: [HoldReason] = []
  /// How many probes in a row have missed it, and the most that one followed which saw it.
  var (missedProbes, longestGap) = (0, 0)
  /// For how many seconds it was seen in all, as in ``KnownKey/shownFor``.
  var shownFor: Int64 = 0
  /// Where the last probe saw it that showed it, and the keys above it there.
  var paths: [Place: [SPKIPin]] = [:]

  /// A key that was just seen.
  public init(firstSeen: Int64, chain: SeenChain) {
    (self.firstSeen, lastSeen, self.chain) = (firstSeen, firstSeen, chain)
  }

  /// Who saw it in the last probe that showed it, sorted.
  public var vantages: [String] {
    witnesses.filter { $0.value.lastSeen == lastSeen }.keys.sorted()
  }

  /// Enters that a probe showed it.
  ///
  /// - Parameter window: seconds after which a witness counts from the beginning again. What was shown once
  ///   a day is never added up.
  mutating func enter(_ sighting: ObservedKey, at now: Int64, window: Int64) {
    probes += 1
    shownFor += KnownKey.vouched(since: lastSeen, missed: missedProbes, at: now)
    paths = sighting.paths
    (missedProbes, longestGap) = (0, max(longestGap, missedProbes))
    chain = sighting.chain
    lastSeen = now
    for vantage in sighting.vantages {
      var witness = witnesses[vantage] ?? Witness(probes: 0, lastSeen: now)
      if now - witness.lastSeen > window { witness.probes = 0 }
      witnesses[vantage] = Witness(probes: witness.probes + 1, lastSeen: now)
    }
  }

  /// Who of these saw it within the window.
  func witnesses(
    among vantages: Set<String>, at now: Int64, window: Int64
  ) -> Set<String> {
    vantages.filter { vantage in
      witnesses[vantage].map { now - $0.lastSeen <= window } ?? false
    }
  }

  /// How many of these saw it in the last probe, and have seen it so many times. Whoever walks from one point to the
  /// next is no quorum. Times do not tell probes apart: they stand still while a clock that was set back catches up.
  func voices(among vantages: Set<String>, probes needed: Int) -> Int {
    Set(paths.keys.map(\.vantage)).count { vantage in
      vantages.contains(vantage) && (witnesses[vantage]?.probes ?? 0) >= needed
    }
  }

  /// Whether it waits for more than further probes.
  public var isHeld: Bool { !reasons.isEmpty }
}

/// One key that a probe showed under a valid chain, and where it was seen.
package struct ObservedKey {
  /// Each place that showed it, and its validated path there, in the order of the probe. Never empty.
  private var observed: [(place: Place, chain: SeenChain)]

  /// The first of its paths.
  package var chain: SeenChain { observed[0].chain }

  package var pin: SPKIPin { chain.leaf.pin }

  var places: Set<Place> { Set(observed.map(\.place)) }

  /// The keys above it, by place.
  var paths: [Place: [SPKIPin]] {
    Dictionary(observed.map { ($0.place, $0.chain.above) }, uniquingKeysWith: { $1 })
  }

  /// Who saw it, by the vantage points' names.
  var vantages: Set<String> { Set(observed.map(\.place.vantage)) }

  /// The keys of a probe, in the order of its observations. Several addresses may show several keys.
  package static func all(in probe: ProbeResult) -> [ObservedKey] {
    var found: [ObservedKey] = []
    for observation in probe.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].observed.append((observation.place, chain))
      } else {
        found.append(ObservedKey(observed: [(observation.place, chain)]))
      }
    }
    return found
  }

  /// What is left without the paths that have a denied key in them; `nil` if that is nothing.
  func without(_ denied: Set<SPKIPin>) -> ObservedKey? {
    let left = observed.filter { denied.isDisjoint(with: $0.chain.path.map(\.pin)) }
    return left.isEmpty ? nil : ObservedKey(observed: left)
  }
}

/// When a changed key is believed, and how long an old one is kept. Times are seconds.
public struct ConfirmationRule: Sendable, Hashable {
  /// How many probes must show a changed key before it is published.
  public var probes: Int
  /// How long a key that was seen fewer times waits for the others. A key that appears once a day
  /// is never added up to a confirmation.
  public var window: Int64
  /// How long an old key is kept after it was last seen.
  public var grace: Int64

  /// A rule.
  public init(probes: Int = 3, window: Int64 = 600, grace: Int64 = 7 * 86_400) {
    self.probes = max(1, probes)
    self.window = window
    self.grace = grace
  }

  /// The rule for an endpoint that is probed every `interval` milliseconds, `nil` for as often as all.
  package func spanning(_ interval: Int64?) -> ConfirmationRule {
    ConfirmationRule(probes: probes, window: max(window, 3 * (interval ?? 0) / 1000), grace: grace)
  }
}

/// What a decision takes into account beside the endpoint's own past.
public struct DecisionContext: Sendable {
  /// Whether the hosts that the endpoint speaks of have published keys of other endpoints, while none of its own was
  /// seen: then its first key joins a list, and must be confirmed as if it had changed.
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
