import SslPinningRules

/// A key that was seen and is not published yet. Times are Unix seconds.
public struct CandidateKey: Sendable, Hashable {
  /// Why a key that was seen often enough is not published automatically.
  public enum HoldReason: String, Sendable, Hashable, CaseIterable, Comparable {
    /// As many as the quorum see other keys, this server among them, or this server does and no quorum sees this one.
    case vantagePoints = "vantage-points"
    /// Its CA is neither known at this endpoint nor named, and no quorum vouches for it.
    case newIssuer = "new-issuer"
    /// Too many endpoints changed at once, no quorum vouches for it, and the configuration says to hold such keys.
    case massChange = "sudden-change"
    /// A person must approve the endpoint's keys.
    case manual

    public static func < (left: HoldReason, right: HoldReason) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// Why its CA, or the key itself, is in no question, whatever else it waits for.
  public enum Assent: Sendable, Hashable {
    /// Published keys of this endpoint are under its CA.
    case known
    /// The configuration names its CA.
    case named
    /// These saw the key in its last probe, and a quorum is among them.
    case vouched(by: Set<String>)
  }

  /// How often and when one vantage point saw it.
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
  /// The vantage points that saw it, by name.
  public var witnesses: [String: Witness] = [:]
  /// The validated path that last showed it, in a finished handshake if one has.
  public var chain: SeenChain
  /// Why it is held, sorted; empty while it needs more probes.
  public var reasons: [HoldReason] = []
  /// How many probes in a row have missed it, and the most that did before a probe saw it again.
  var (missedProbes, longestGap) = (0, 0)
  /// For how many seconds it was seen in all, as in ``KnownKey/shownFor``.
  var shownFor: Int64 = 0
  /// As in ``KnownKey/interrupted``.
  var interrupted: Set<SPKIPin>?
  /// Why its CA is in no question, if it is in none; `nil` also until the first probe after a restart.
  public internal(set) var assent: Assent?
  /// Whether somebody has seen it, but not often enough for a voice: a few more probes may settle that a quorum vouches.
  public internal(set) var isGainingVoices = false
  /// When vantage points last had a word against it, and how many probes have shown it since without one.
  var (outvotedAt, silentProbes): (Int64?, Int) = (nil, 0)
  /// Whether they ever said so in a probe.
  var isContradicted = false
  /// The places where the last probe that showed it saw it, and the keys above it there.
  var paths: [Place: [SPKIPin]] = [:]

  /// A key that was just seen.
  public init(firstSeen: Int64, chain: SeenChain) {
    (self.firstSeen, lastSeen, self.chain) = (firstSeen, firstSeen, chain)
  }

  init(firstSeen: Int64, chain: SeenChain, interrupted: Set<SPKIPin>) {
    self.init(firstSeen: firstSeen, chain: chain)
    self.interrupted = interrupted
  }

  /// For how many seconds, and probes that show it, silence does not take back what vantage points said: whoever is before
  /// this server may have them silent for a probe.
  private static let echo: (seconds: Int64, probes: Int) = (60, 3)

  /// Enters what a probe that shows it says against it, and says whether it has to wait.
  ///
  /// - Parameters:
  ///   - answering: the vantage points that saw others in this probe.
  ///   - standing: those that stand by what they saw.
  mutating func isOutvoted(
    by answering: Set<String>, and standing: Set<String>, against witnesses: Set<String>,
    at now: Int64, _ context: DecisionContext
  ) -> Bool {
    let answering = answering.subtracting(witnesses)
    isContradicted =
      isContradicted
      || context.isOutvoted(
        by: answering.subtracting([ProbeObservation.direct]), against: witnesses)
    let points = context.vantages.subtracting([ProbeObservation.direct])
    let isSeen = witnesses.intersection(points).count >= min(context.quorum, points.count)
    // What points have said themselves stands for as long as they are there and do not get to the endpoint. Once a quorum sees
    // the key, those that see nothing have no word.
    let blind = isSeen ? [] : isContradicted ? standing.union(context.blocked) : standing
    if context.isOutvoted(by: answering.union(blind.subtracting(witnesses)), against: witnesses) {
      outvote(at: now)
      return true
    }
    silentProbes += 1
    return !isSeen && Self.echoes(outvotedAt, silentProbes, at: now)
  }

  /// Whether what vantage points said at that time still stands, after so many probes in which they were silent.
  static func echoes(_ outvotedAt: Int64?, _ silentProbes: Int, at now: Int64) -> Bool {
    outvotedAt.map { now - $0 < echo.seconds || silentProbes < echo.probes } ?? false
  }

  /// Enters that vantage points see others while this server does not see it. Its own word is none: behind a balancer a key
  /// is shown now and then, also while the points are away.
  mutating func miss(
    among others: Set<String>, at now: Int64, window: Int64, _ context: DecisionContext
  ) {
    missedProbes += 1
    let points = others.subtracting([ProbeObservation.direct])
    let witnesses = witnesses(among: context.vantages, at: now, window: window)
    if context.isOutvoted(by: points.subtracting(witnesses), against: witnesses) {
      isContradicted = true
      outvote(at: now)
    }
  }

  /// Time in which others deny it is none for which it was there: once listed, its hour as a short-lived key begins anew.
  private mutating func outvote(at now: Int64) {
    (outvotedAt, silentProbes, shownFor) = (now, 0, 0)
  }

  /// Whether the endpoint shows it, as far as is known: behind a balancer, a probe now and then does not see it.
  public var isShown: Bool {
    missedProbes <= max(Self.passingGap, min(2 * longestGap, Self.longestPatience))
  }

  /// After how many probes in a row without it, at least and at most, it is shown no more.
  private static let (passingGap, longestPatience) = (2, 60)

  /// The vantage points that saw it in the last probe that showed it, sorted.
  public var vantages: [String] {
    witnesses.filter { $0.value.lastSeen == lastSeen }.keys.sorted()
  }

  /// Enters that a probe showed it.
  ///
  /// - Parameter window: after so many seconds a witness counts from the beginning again, so that sightings
  ///   once a day never add up.
  mutating func enter(_ sighting: ObservedKey, at now: Int64, window: Int64) {
    probes += 1
    shownFor += KnownKey.vouched(since: lastSeen, missed: missedProbes, at: now)
    paths = sighting.paths
    (missedProbes, longestGap) = (0, max(longestGap, missedProbes))
    // Whoever stands between must not put in another chain while a person reads this one.
    if sighting.chain.isConfirmed || !chain.isConfirmed { chain = sighting.chain }
    lastSeen = now
    for vantage in sighting.vantages {
      var witness = witnesses[vantage] ?? Witness(probes: 0, lastSeen: now)
      if now - witness.lastSeen > window { witness.probes = 0 }
      witnesses[vantage] = Witness(probes: witness.probes + 1, lastSeen: now)
    }
  }

  /// Which of these vantage points saw it within the window.
  func witnesses(
    among vantages: Set<String>, at now: Int64, window: Int64
  ) -> Set<String> {
    vantages.filter { vantage in
      witnesses[vantage].map { now - $0.lastSeen <= window } ?? false
    }
  }

  /// Which of these saw it in the last probe, and have seen it so many times. Whoever walks from one point to the
  /// next is no quorum. Times do not tell probes apart: they stand still while a clock that was set back catches up.
  func voices(among vantages: Set<String>, probes needed: Int) -> Set<String> {
    Set(paths.keys.map(\.vantage)).filter { vantage in
      vantages.contains(vantage) && (witnesses[vantage]?.probes ?? 0) >= needed
    }
  }

  /// Whether a quorum vouches for it.
  func isVouchedFor(by context: DecisionContext, probes needed: Int) -> Bool {
    context.isQuorum(voices(among: context.vantages, probes: needed))
  }

  /// Whether more than further probes is needed.
  public var isHeld: Bool { !reasons.isEmpty }
}

/// One key that a probe showed with a valid chain, and where.
package struct ObservedKey {
  /// Each place that showed it, with its validated path there, and the keys above it that are believed, in the probe's
  /// order. Never empty.
  private var observed: [(place: Place, chain: SeenChain, above: [SPKIPin])]

  /// The first of its paths that a finished handshake showed, or else the first.
  package var chain: SeenChain { (observed.first(where: \.chain.isConfirmed) ?? observed[0]).chain }

  package var pin: SPKIPin { observed[0].chain.leaf.pin }

  var places: Set<Place> { Set(observed.map(\.place)) }

  /// Its places, whatever kind of key was asked for there.
  var points: Set<Place> { Set(observed.map(\.place.ofAnyType)) }

  /// Whether it was shown only where its kind was asked for.
  var isAskedFor: Bool { observed.allSatisfy { $0.place != $0.place.ofAnyType } }

  /// The keys above it, by place.
  var paths: [Place: [SPKIPin]] {
    Dictionary(observed.map { ($0.place, $0.above) }, uniquingKeysWith: { $1 })
  }

  /// The vantage points that saw it, by name.
  var vantages: Set<String> { Set(observed.map(\.place.vantage)) }

  /// All keys of a probe, in the order of its observations: different addresses may show different keys.
  package static func all(in probe: ProbeResult) -> [ObservedKey] {
    var found: [ObservedKey] = []
    for observation in probe.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].observed.append((observation.place, chain, chain.above))
      } else {
        found.append(ObservedKey(observed: [(observation.place, chain, chain.above)]))
      }
    }
    return found
  }

  /// This key, with nothing new about its CAs from a handshake that was not finished (``SeenChain/isConfirmed``): a chain
  /// under known ones counts as it is, and of another one what is known.
  func believed(beside known: Set<SPKIPin>) -> ObservedKey {
    ObservedKey(
      observed: observed.map { place, chain, above in
        let isBelieved = chain.isConfirmed || known.isSuperset(of: chain.authorities)
        return (place, chain, isBelieved ? above : above.filter(known.contains))
      })
  }

  /// This key without the paths that contain a denied key; `nil` if none is left.
  func without(_ denied: Set<SPKIPin>) -> ObservedKey? {
    let left = observed.filter { denied.isDisjoint(with: $0.chain.path.map(\.pin)) }
    return left.isEmpty ? nil : ObservedKey(observed: left)
  }
}

/// When a changed key is believed, and how long an old one is kept. Times are seconds.
public struct ConfirmationRule: Sendable, Hashable {
  /// How many probes must show a changed key before it is published.
  public var probes: Int
  /// How long a key waits for the remaining probes, so that a key seen once a day is never confirmed.
  public var window: Int64
  /// How long an old key is kept after it was last seen.
  public var grace: Int64

  /// A rule.
  public init(probes: Int = 3, window: Int64 = 600, grace: Int64 = 7 * 86_400) {
    self.probes = max(1, probes)
    self.window = window
    self.grace = grace
  }

  /// The rule for an endpoint that is probed every `interval` milliseconds; `nil`: at the common interval.
  package func spanning(_ interval: Int64?) -> ConfirmationRule {
    ConfirmationRule(probes: probes, window: max(window, 3 * (interval ?? 0) / 1000), grace: grace)
  }
}

/// What decisions take into account besides the endpoint's own past.
public struct DecisionContext: Sendable {
  /// Whether the hosts that the endpoint speaks of have published keys of other endpoints, while none of its own was
  /// seen: then its first key joins a list, and must be confirmed as if it had changed.
  public var isListed = false
  /// Which of the keys just seen those endpoints have published: these are not new for the hosts.
  public var listedPins: Set<SPKIPin> = []
  /// Which of those only a copy lists: whatever their CA is, it is not known yet.
  public var copiedPins: Set<SPKIPin> = []
  /// Which of the CAs just seen are above those endpoints' keys.
  public var listedAuthorities: Set<SPKIPin> = []
  /// Who decides about a new key.
  public var approval = ApprovalMode.automatic
  /// The configured vantage points, and this server itself.
  public var vantages: Set<String> = [ProbeObservation.direct]
  /// How many of them must agree.
  public var quorum = DecisionContext.quorum(of: 0)
  /// Whether the endpoint shows each region its own key.
  public var isUnion = false
  /// The CAs that the operator named in the configuration, by their keys.
  public var issuers: Set<SPKIPin> = []
  /// The CAs of which clients ask for one above a listed key; empty if they ask for none.
  public var demanded: Set<SPKIPin> = []
  /// Keys that are never published.
  public var denied: Set<SPKIPin> = []
  /// Whether too many endpoints changed at once, if that is a reason to hold a key.
  public var isMassChange = false
  /// The unannounced keys whose place a new key takes.
  var standing: Set<SPKIPin> = []
  /// The vantage points that were asked for a kind of key and got no answer, by the kind.
  var unheard: [String: Set<String>] = [:]
  /// The vantage points that saw nothing and are not silent: those that had too many questions to answer all, those that did not
  /// get to the endpoint though it showed them a listed key within the hour, and those for whose answer this server had no time
  /// though it had one within the window.
  var contradicting: Set<String> = []
  /// Those that are there and do not get to the endpoint, whenever they did.
  var blocked: Set<String> = []
  /// Those that got no answer to a question for a kind of key, but had one within the hour, by the kind.
  var withheld: [String: Set<String>] = [:]
  /// Those that were refused every question for a kind of key, by the kind.
  var lacking: [String: Set<String>] = [:]

  /// Nothing out of the ordinary.
  public init() {}

  /// How many must agree unless the operator says otherwise: half of all, and at least two. One could be
  /// this server alone, with a middleman before it.
  public static func quorum(of vantagePoints: Int) -> Int { max(2, (vantagePoints + 1) / 2) }

  /// Whether these are a quorum: so many of the vantage points, and so many with this server. Whoever stands before this
  /// server speaks for it and silences whom he likes, so its voice stands in for no point.
  func isQuorum(_ seen: Set<String>) -> Bool {
    let (voices, points) = (
      seen.intersection(vantages), vantages.subtracting([ProbeObservation.direct])
    )
    return voices.count >= quorum
      && voices.intersection(points).count >= min(quorum, points.count)
  }

  /// Whether the configuration names a CA of this chain.
  func names(_ chain: SeenChain) -> Bool {
    chain.path.dropFirst().contains { issuers.contains($0.pin) }
  }

  /// The vantage points that are silent about a key that was seen at these places: asked for its kind, they got no answer.
  func silent(about places: some Sequence<Place>) -> Set<String> {
    places.reduce(into: []) { $0.formUnion(unheard[$1.keyType] ?? []) }
  }

  /// The vantage points that have a word against a new key that was seen at these places, though they saw no other now.
  func contradicting(at places: some Sequence<Place>) -> Set<String> {
    places.reduce(into: contradicting) { $0.formUnion(withheld[$1.keyType] ?? []) }
      .intersection(vantages)
  }

  /// Whether a key must wait because others are shown: as many as the quorum get only other keys, where this server is one
  /// voice, or this server does and no quorum of vantage points sees the key. If there are fewer points than the quorum, as
  /// many as there are points are enough for either: a single point is there to contradict this server. Silence does not
  /// count, so a vantage point that is down or cut off from this server holds no key.
  ///
  /// - Parameters:
  ///   - others: the vantage points that got an answer, with other keys only.
  ///   - witnesses: the vantage points that saw the key.
  func isOutvoted(by others: Set<String>, against witnesses: Set<String>) -> Bool {
    let points = vantages.count - 1
    let needed = min(quorum, points)
    guard points > 0, !isUnion else { return false }
    return others.count >= needed
      || others.contains(ProbeObservation.direct) && witnesses.count < needed
  }
}
