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

  /// How many of these see it at one moment, and have seen it so many times. Whoever walks from one point to the next
  /// is no quorum.
  func voices(among vantages: Set<String>, probes needed: Int) -> Int {
    vantages.count { vantage in
      witnesses[vantage].map { $0.probes >= needed && $0.lastSeen == lastSeen } ?? false
    }
  }

  /// Whether it waits for more than further probes.
  public var isHeld: Bool { !reasons.isEmpty }
}
