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
  /// For how many seconds it was seen in all. The time between two probes that saw it counts up to ten minutes, or
  /// up to one minute if probes between them missed it.
  public var shownFor: Int64
  /// Where it was seen, and when last; at most ``maximumPlaces``: the most recent one of each vantage point, and the most recent ones.
  public var seenAt: [Place: Int64] = [:]
  /// The keys above it in the last validated path of each place that showed it, from the issuer to the anchor. A
  /// silent place keeps its path, because its users come back with it.
  public var paths: [Place: [SPKIPin]] = [:]
  /// Since when probes succeed without showing it; its grace time counts from here.
  ///
  /// Not from ``lastSeen``: while the server or the endpoint was down, nobody could miss the key, and
  /// retiring it on the first probe afterwards could cut off half of a fleet.
  public var missedSince: Int64?
  /// Since when probes cannot tell whether it is gone: it is not seen, and a place that showed it does not
  /// answer (``ProbeCoverage``). That time is not part of its grace time.
  public var unaskedSince: Int64?
  /// Until when the certificate that last showed it is valid; `nil` if it was never seen.
  public var certificateExpires: Int64?
  /// Set while the key is announced and has not been seen yet.
  public var staged: Staging?
  /// Whether only probes supported it when it was published beside other keys: nobody announced or approved it.
  public var isUnannounced: Bool
  /// Whether it was announced by somebody who may do nothing else. Then the CAs that it is shown under do not become known by
  /// it (``EndpointKeys/taught(by:_:_:_:_:)``), until a person or a quorum of vantage points speaks for it.
  public internal(set) var bringsNoCA = false
  /// Of a short-lived key, the unannounced keys that had not left when it first appeared
  /// (``EndpointKeys/standing``): if one of them is shown again, it interrupted that one. `nil` if nobody knows: an
  /// older record and a copy do not say so.
  var interrupted: Set<SPKIPin>?
  /// How many probes have missed it since it was last seen.
  public var missedProbes: Int
  /// The most probes in a row that missed it and were followed by one that saw it.
  public var longestGap: Int
  /// The addresses that answered without it since they last showed it, of a name with more of them than are probed at a time.
  var answered: Set<Place> = []
  /// When vantage points last had a word against it, and how many probes have shown it since without one.
  var (outvotedAt, silentProbes): (Int64?, Int) = (nil, 0)
  /// In how many probes in a row a quorum of vantage points has seen it under a CA that it does not bring.
  var secondedProbes = 0

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

  /// The keys of the issuers and anchors under which it was last seen.
  var authorities: Set<SPKIPin> {
    Set(paths.values.flatMap(SeenChain.authorities))
  }

  /// The state of the key.
  public var state: KeyState {
    if staged != nil { return .staged }
    return missedSince == nil ? .active : .retiring
  }
}

extension KnownKey {
  /// An unannounced key that was seen for fewer seconds is short-lived. One that lasts longer is not a middleman's
  /// brief attack, and leaves after its grace time.
  static let shortLife: Int64 = 3600
  /// The fewest probes that must miss it before it is withdrawn.
  static let leastProbesToWithdraw = 30
  /// The most probes that must miss it: an attacker who shows a key now and then stretches the gaps, and must not
  /// keep it listed for days.
  static let mostProbesToWithdraw = 210
  /// The fewest seconds for which it must be missed.
  static let timeToWithdraw: Int64 = 600
  /// A key must be missed for this many times as long as it was there, and by this many times as many probes as its
  /// longest gap had. A server behind a sticky balancer, or one that gets every twentieth connection, comes and goes
  /// at a pace that it has shown: a gap of seven times that happens once in a thousand times (e^-7).
  static let spansToWithdraw: Int64 = 7
  /// For how many seconds a probe counts that found the key again after others had missed it.
  static let moment: Int64 = 60
  /// For how many seconds two probes in a row count at most: two sightings an hour apart do not prove an hour.
  static let stretch: Int64 = 600
  /// For how many seconds the places that showed it must have answered without it before their silence is ignored.
  static let settled: Int64 = 86_400
  /// How many interrupted keys are remembered.
  static let mostInterrupted = 16
  /// How many places are remembered.
  static let maximumPlaces = 32

  /// Whether it is unannounced and has been there for less than an hour in all.
  var isShortLived: Bool { isUnannounced && shownFor < Self.shortLife }

  /// Whether a key that appears now takes its place: it was seen within the hour before the last sight of any published
  /// key. Probes that show nothing, or keys that are not published, do not count: else whoever keeps this server away has
  /// it leave. A key that was not seen for longer has left, however often it came back before.
  func isStanding(beside last: Int64) -> Bool {
    staged == nil && last - lastSeen < Self.shortLife
  }

  /// Whether it proves, by being shown, that a key that is gone was there for a moment only: somebody spoke for it, or
  /// the other one interrupted it. A newer key that nobody announced may be a middleman's, and the one that is gone the
  /// servers'; so may one that had left before, and came back.
  func disproves(_ passing: KnownKey) -> Bool {
    guard isUnannounced else { return true }
    return firstSeen < passing.firstSeen && passing.interrupted?.contains(pin) ?? true
  }

  /// Whether it is about to be withdrawn: short-lived, and missed by so many probes and for as long as it was there.
  ///
  /// - Parameter now: Unix time in seconds.
  func isLeaving(at now: Int64) -> Bool {
    guard isShortLived, unaskedSince == nil, missedProbes >= probesToWithdraw, let missedSince
    else { return false }
    return now - missedSince >= shownFor
  }

  /// How many probes must miss it before it is withdrawn.
  var probesToWithdraw: Int {
    min(
      Self.mostProbesToWithdraw,
      max(Self.leastProbesToWithdraw, Int(Self.spansToWithdraw) * (longestGap + 1)))
  }

  /// Whether it was there briefly and is gone: unannounced, seen for less than an hour, and then missed for seven
  /// times as long as it was there (``isLeft(at:)``).
  ///
  /// - Parameter now: Unix time in seconds.
  func isPassing(at now: Int64) -> Bool {
    guard isShortLived, isLeft(at: now), let missedSince else { return false }
    return now - missedSince >= Self.spansToWithdraw * shownFor
  }

  /// Whether it is no longer in use, as far as probes can tell: it was missed for ten minutes, and by
  /// ``probesToWithdraw`` probes.
  ///
  /// - Parameter now: Unix time in seconds.
  func isLeft(at now: Int64) -> Bool {
    guard unaskedSince == nil, missedProbes >= probesToWithdraw, let missedSince else {
      return false
    }
    return now - missedSince >= Self.timeToWithdraw
  }

  /// Whether clients would accept it, as far as is known: it is not denied, and one of its paths has no denied key.
  func isUsable(beside denied: Set<SPKIPin>) -> Bool {
    !denied.contains(pin)
      && (paths.isEmpty || paths.values.contains { denied.isDisjoint(with: $0) })
  }

  /// Whether the next probes may lead to its withdrawal.
  var isDoubtful: Bool {
    isShortLived && unaskedSince == nil && missedSince != nil && missedProbes < probesToWithdraw
  }

  /// After how many seconds without knowing whether it is gone that is reported.
  func patience(_ rule: ConfirmationRule) -> Int64 {
    isShortLived ? Self.timeToWithdraw : rule.grace
  }

  /// The vantage points that ever saw it, as far as is remembered.
  var vantages: Set<String> { Set(seenAt.keys.map(\.vantage)) }

  /// Enters that a probe showed it.
  mutating func note(_ sighting: ObservedKey, at now: Int64) {
    shownFor += Self.vouched(since: lastSeen, missed: missedProbes, at: now)
    longestGap = max(longestGap, missedProbes)
    (lastSeen, missedProbes, missedSince, unaskedSince) = (now, 0, nil, nil)
    staged = nil
    if !isShortLived { interrupted = nil }
    certificateExpires = sighting.chain.leaf.expiry
    remember(sighting.paths, at: now)
  }

  /// Remembers where it was seen, and the keys above it there.
  mutating func remember(_ seen: [Place: [SPKIPin]], at now: Int64) {
    for place in seen.keys { seenAt[place] = now }
    answered.subtract(seen.keys)
    paths[.unknown] = nil
    paths.merge(seen) { $1 }
    guard seenAt.count > Self.maximumPlaces else { return }
    let newest = seenAt.sorted { ($0.value, $0.key) > ($1.value, $1.key) }
    // Whoever stands before this server gives it as many addresses as he likes: they must not take a point's word.
    var heard: Set<String> = []
    let last = newest.filter { heard.insert($0.key.vantage).inserted }
    let others = newest.filter { seen in !last.contains { $0.key == seen.key } }
    seenAt = Dictionary(
      uniqueKeysWithValues: (last + others).prefix(Self.maximumPlaces).map { ($0, $1) })
    paths = paths.filter { seenAt[$0.key] != nil }
  }

  /// Forgets the paths of places that no longer belong to the name and were last seen before a time.
  mutating func forgetPaths(before time: Int64, where isGone: (Place) -> Bool) {
    paths = paths.filter { place, _ in seenAt[place] ?? lastSeen >= time || !isGone(place) }
  }

  /// Enters that a probe did not show it.
  ///
  /// - Parameters:
  ///   - isMissed: whether the probe can tell that the key is gone.
  ///   - last: when the previous probe succeeded; if this one cannot tell, the time since is not part of the
  ///     grace time.
  mutating func miss(_ isMissed: Bool, at now: Int64, since last: Int64) {
    if isMissed || missedSince.map({ now - $0 >= Self.settled }) == true {
      (missedSince, unaskedSince) = (missedSince ?? now, nil)
      missedProbes += 1
    } else {
      unaskedSince = unaskedSince ?? now
      missedSince = missedSince.map { max($0, min(now, $0 + now - last)) }
    }
  }

  /// For how many seconds a probe counts that shows a key again.
  static func vouched(since last: Int64, missed: Int, at now: Int64) -> Int64 {
    min(max(0, now - last), missed == 0 ? stretch : moment)
  }
}

/// The state of an endpoint's key: observed, held, or published in one of three ways. A key that is gone is
/// only in the history.
public enum KeyState: String, Sendable, Hashable, CaseIterable {
  /// Seen, but not often enough yet.
  case observed
  /// Confirmed by probes, and waiting for a person or for other vantage points.
  case held
  /// Published ahead of its use.
  case staged
  /// Published, and seen by the last probe that could tell.
  case active
  /// Published, and missed by probes that succeeded; its grace time runs.
  case retiring
}
