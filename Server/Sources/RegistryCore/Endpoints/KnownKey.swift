import SslPinningRules

/// A key that is published for an endpoint. Times are Unix seconds.
public struct KnownKey: Sendable, Hashable {
  /// A key that was announced before any probe showed it.
  public struct Staging: Sendable, Hashable {
    /// When it was announced.
    public var at: Int64
    /// Who announced it.
    public var by: String
    /// Why, in their words.
    public var note: String

    /// An announcement.
    public init(at: Int64, by: String, note: String = "") {
      (self.at, self.by, self.note) = (at, by, note)
    }
  }

  /// The SHA-256 of its SubjectPublicKeyInfo.
  public let pin: SPKIPin
  /// When it was first seen, or announced; published as `date`.
  public internal(set) var firstSeen: Int64
  /// When it was last seen; for a staged key, when it was announced.
  public var lastSeen: Int64
  /// For how many seconds it was seen in all: ten minutes at most for two probes in a row that saw it, and a minute
  /// at most if probes between them missed it.
  public var shownFor: Int64
  /// Where it was seen, and when it last was there; of more than ``maximumPlaces`` those where it was last.
  public var seenAt: [Place: Int64] = [:]
  /// The keys above it in the last validated path of each place that showed it, from the issuer to the anchor. A
  /// place that is silent keeps its path: its users are back with it.
  public var paths: [Place: [SPKIPin]] = [:]
  /// Since when probes succeed without showing it; its grace time counts from here.
  ///
  /// Not from ``lastSeen``: while nobody probed (this server was down, or the endpoint was) a key
  /// was not missed, and retiring it on the first probe afterwards could cut off half of a fleet.
  public var missedSince: Int64?
  /// Since when probes cannot tell whether it is gone: it is not seen, and a place that showed it does not
  /// answer (``ProbeCoverage``). That time is no part of its grace time.
  public var unaskedSince: Int64?
  /// Until when the certificate that last showed it is valid; `nil` where it was never seen.
  public var certificateExpires: Int64?
  /// Set while the key was announced and never seen.
  public var staged: Staging?
  /// Whether probes alone spoke for it, beside keys that were published before: nobody announced it, and
  /// nobody approved it.
  public var isUnannounced: Bool
  /// How many probes have missed it since it was last seen.
  public var missedProbes: Int
  /// The most probes in a row that missed it and were followed by one that saw it.
  public var longestGap: Int

  /// A key.
  public init(
    pin: SPKIPin, firstSeen: Int64, lastSeen: Int64, missedSince: Int64? = nil,
    certificateExpires: Int64? = nil, staged: Staging? = nil, isUnannounced: Bool = false,
    missedProbes: Int = 0, longestGap: Int = 0,
    shownFor: Int64? = nil
  ) {
    self.pin = pin
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.shownFor = shownFor ?? (lastSeen - firstSeen)
    self.missedSince = missedSince
    self.certificateExpires = certificateExpires
    self.staged = staged
    self.isUnannounced = isUnannounced
    self.missedProbes = missedProbes
    self.longestGap = longestGap
  }

  /// The keys of the issuers and of the anchors that it was last seen under.
  var authorities: Set<SPKIPin> {
    Set(paths.values.flatMap(SeenChain.authorities))
  }

  /// Where the key stands.
  public var state: KeyState {
    if staged != nil { return .staged }
    return missedSince == nil ? .active : .retiring
  }
}

extension KnownKey {
  /// For how many seconds a key is short-lived that nobody announced. What lasts longer is no middleman's
  /// moment, and leaves by its grace time.
  static let shortLife: Int64 = 3600
  /// How many probes must miss it before it is withdrawn, at least.
  static let leastProbesToWithdraw = 30
  /// How many, at most: whoever shows a key now and then stretches the gaps, and must not keep it for days.
  static let mostProbesToWithdraw = 210
  /// For how many seconds, at least.
  static let timeToWithdraw: Int64 = 600
  /// For how many times as long as it was there, and for how many times as many probes as ever missed it while it
  /// was. A server behind a balancer that keeps us at one server for a while, and one that takes every twentieth
  /// connection, come and go at a pace that they have shown: seven times that is missed once in a thousand
  /// times (e^-7).
  static let spansToWithdraw: Int64 = 7
  /// For how many seconds a probe vouches that found the key again after others had missed it.
  static let moment: Int64 = 60
  /// For how many seconds two probes in a row vouch at most: of probes an hour apart, two moments are no hour.
  static let stretch: Int64 = 600
  /// For how long the places that showed it must have answered without it before their silence is no matter.
  static let settled: Int64 = 86_400
  /// How many places are remembered.
  static let maximumPlaces = 32

  /// Whether nobody announced it, and it has been there for less than an hour in all.
  var isShortLived: Bool { isUnannounced && shownFor < Self.shortLife }

  /// How many probes must miss it before it is withdrawn.
  var probesToWithdraw: Int {
    min(
      Self.mostProbesToWithdraw,
      max(Self.leastProbesToWithdraw, Int(Self.spansToWithdraw) * (longestGap + 1)))
  }

  /// Whether it was there for a moment and is gone: published by probes alone, seen for less than an hour, and then
  /// missed for seven times as long as it was there (``isLeft(at:)``).
  ///
  /// - Parameter now: Unix time in seconds.
  func isPassing(at now: Int64) -> Bool {
    guard isShortLived, isLeft(at: now), let missedSince else { return false }
    return now - missedSince >= Self.spansToWithdraw * shownFor
  }

  /// Whether nobody uses it any longer, as far as probes can tell: it was missed for ten minutes, and by
  /// ``probesToWithdraw``.
  ///
  /// - Parameter now: Unix time in seconds.
  func isLeft(at now: Int64) -> Bool {
    guard unaskedSince == nil, missedProbes >= probesToWithdraw, let missedSince else {
      return false
    }
    return now - missedSince >= Self.timeToWithdraw
  }

  /// Whether clients would believe it, as far as is known: neither it nor a key in each of its paths is denied.
  func isUsable(beside denied: Set<SPKIPin>) -> Bool {
    !denied.contains(pin)
      && (paths.isEmpty || paths.values.contains { denied.isDisjoint(with: $0) })
  }

  /// Whether the next probes may lead to its withdrawal.
  var isDoubtful: Bool {
    isShortLived && unaskedSince == nil && missedSince != nil && missedProbes < probesToWithdraw
  }

  /// After how many seconds of silence somebody is told that nobody knows whether it is gone.
  func patience(_ rule: ConfirmationRule) -> Int64 {
    isShortLived ? Self.timeToWithdraw : rule.grace
  }

  /// Who saw it within the last `window` seconds, by the vantage points' names.
  func vantages(at now: Int64, window: Int64) -> Set<String> {
    Set(seenAt.filter { now - $0.value <= window }.map(\.key.vantage))
  }

  /// Enters that a probe showed it.
  mutating func note(_ sighting: ObservedKey, at now: Int64) {
    shownFor += Self.vouched(since: lastSeen, missed: missedProbes, at: now)
    longestGap = max(longestGap, missedProbes)
    (lastSeen, missedProbes, missedSince, unaskedSince) = (now, 0, nil, nil)
    staged = nil
    certificateExpires = sighting.chain.leaf.expiry
    remember(sighting.paths, at: now)
  }

  /// Remembers where it was seen, and under which keys.
  mutating func remember(_ seen: [Place: [SPKIPin]], at now: Int64) {
    for place in seen.keys { seenAt[place] = now }
    paths[.unknown] = nil
    paths.merge(seen) { $1 }
    guard seenAt.count > Self.maximumPlaces else { return }
    let newest = seenAt.sorted { ($0.value, $0.key) > ($1.value, $1.key) }
    seenAt = Dictionary(uniqueKeysWithValues: newest.prefix(Self.maximumPlaces).map { ($0, $1) })
    paths = paths.filter { seenAt[$0.key] != nil }
  }

  /// Forgets the paths of places that the name has no longer and that were last seen before a time.
  mutating func forgetPaths(before time: Int64, where isGone: (Place) -> Bool) {
    paths = paths.filter { place, _ in seenAt[place] ?? lastSeen >= time || !isGone(place) }
  }

  /// Enters that a probe did not show it.
  ///
  /// - Parameters:
  ///   - isMissed: whether the probe can tell that.
  ///   - last: when the probe before succeeded: what passed since is no part of the grace time if not.
  mutating func miss(_ isMissed: Bool, at now: Int64, since last: Int64) {
    if isMissed || missedSince.map({ now - $0 >= Self.settled }) == true {
      (missedSince, unaskedSince) = (missedSince ?? now, nil)
      missedProbes += 1
    } else {
      unaskedSince = unaskedSince ?? now
      missedSince = missedSince.map { max($0, min(now, $0 + now - last)) }
    }
  }

  /// For how many seconds a probe vouches that shows a key again.
  static func vouched(since last: Int64, missed: Int, at now: Int64) -> Int64 {
    min(max(0, now - last), missed == 0 ? stretch : moment)
  }
}

/// Where a key of an endpoint stands. *Observed*, *held*, *published* as one of three, *gone*: a key that
/// is gone stands in the history alone.
public enum KeyState: String, Sendable, Hashable, CaseIterable {
  /// Seen, not often enough yet.
  case observed
  /// Confirmed by probes, and waiting for a person or for another vantage point.
  case held
  /// Published ahead of its use.
  case staged
  /// Published, and seen by the last probe that could tell.
  case active
  /// Published, and missed by probes that succeeded; its grace time runs.
  case retiring
}
