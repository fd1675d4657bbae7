import SslPinningRules

/// What a probe led to.
public enum KeyEvent: Sendable, Hashable {
  /// The key is published from now on; `isFirst` if the endpoint had none.
  case published(SPKIPin, isFirst: Bool)
  /// A changed key was seen so many times and waits for more probes.
  case waiting(SPKIPin, probes: Int, needed: Int)
  /// A key that was seen often enough is held for a person or for other vantage points.
  case held(SPKIPin, [CandidateKey.HoldReason])
  /// A staged key was seen at the endpoint for the first time; `isUnderNewCA` if some path has a CA that it does not make known.
  case activated(SPKIPin, isUnderNewCA: Bool = false)
  /// The endpoint shows a key that is denied.
  case deniedKeySeen(SPKIPin)
  /// The endpoint's validated path has a denied key above the leaf, or had one at a place that is silent now:
  /// clients refuse every connection there.
  case deniedAuthoritySeen(SPKIPin)
  /// The endpoint shows the key under none of the CAs that clients ask for: they refuse every connection there.
  case caMissing(SPKIPin)
  /// A waiting key was not seen again in time and is forgotten.
  case lapsed(SPKIPin)
  /// A new key is not counted, or no longer, because too many others wait.
  case tooManyCandidates(SPKIPin)
  /// An old key's grace time is over; it is no longer published.
  case retired(SPKIPin)
  /// An unannounced key was there for a moment and is gone. It is no longer published, but not denied: if it
  /// returns, it must be confirmed again.
  case withdrawn(SPKIPin)
  /// A published key is not seen but cannot leave: a place that showed it does not answer, or it was there for a moment and
  /// what is shown does not prove that it was not the servers'.
  case undecided(SPKIPin)
  /// Fewer vantage points than the quorum reach the endpoint for ten minutes, and these are there: what they saw has no
  /// word against a new key after an hour.
  case vantageBlocked([String])
  /// The endpoint's chain proves nothing; nothing changes. `isDisputed` if only vantage points are shown such a chain, and
  /// some place is shown a listed key.
  case refused(reason: String, presented: SPKIPin?, isDisputed: Bool = false)
  /// The endpoint could not be probed; nothing changes.
  case unreachable(reason: String)

  /// The event's name in logs.
  package var name: String {
    switch self {
    case .published: "key_published"
    case .waiting: "key_waiting"
    case .held: "key_held"
    case .activated: "key_activated"
    case .deniedKeySeen, .deniedAuthoritySeen: "denied_key_seen"
    case .caMissing: "ca_missing"
    case .lapsed: "key_lapsed"
    case .tooManyCandidates: "key_ignored"
    case .retired: "key_retired"
    case .withdrawn: "key_withdrawn"
    case .undecided: "key_undecided"
    case .vantageBlocked: "vantage_blocked"
    case .refused: "probe_refused"
    case .unreachable: "probe_failed"
    }
  }

  /// Whether the document changes.
  package var changesDocument: Bool {
    switch self {
    case .published, .retired, .withdrawn: true
    default: false
    }
  }

  /// Whether the endpoint shows a key that is not published.
  package var isChange: Bool {
    switch self {
    case .published(_, isFirst: false), .waiting, .held: true
    default: false
    }
  }

  /// Whether it changes what is known about keys, and so belongs in the history.
  package var isHistoric: Bool {
    switch self {
    case .published, .held, .activated, .retired, .withdrawn, .undecided, .lapsed, .deniedKeySeen,
      .deniedAuthoritySeen, .caMissing, .tooManyCandidates, .vantageBlocked:
      true
    case .waiting(_, let probes, _): probes == 1
    case .refused, .unreachable: false
    }
  }

  /// The key that it is about.
  package var pin: SPKIPin? {
    switch self {
    case .published(let pin, _), .waiting(let pin, _, _), .held(let pin, _), .lapsed(let pin),
      .retired(let pin), .withdrawn(let pin), .undecided(let pin), .tooManyCandidates(let pin),
      .activated(let pin, _),
      .deniedKeySeen(let pin), .deniedAuthoritySeen(let pin), .caMissing(let pin):
      pin
    case .refused(_, let presented, _): presented
    case .unreachable, .vantageBlocked: nil
    }
  }
}

extension KeyEvent: CustomStringConvertible {
  public var description: String {
    switch self {
    case .published(_, isFirst: true): "the endpoint's first key is published"
    case .published(_, isFirst: false):
      "a new key that nobody announced is published beside the old ones"
    case .waiting(_, let probes, let needed): "a new key was seen on \(probes) of \(needed) probes"
    case .held(_, let reasons):
      "a new key is held: \(reasons.map(\.explanation).joined(separator: ", "))"
    case .activated(_, isUnderNewCA: false): "a staged key is in use"
    case .activated(_, isUnderNewCA: true):
      "a staged key is in use, under a CA that is not known here: another key under that waits for a person, unless an"
        + " administrator approves this one, or the CA is named in issuers"
    case .deniedKeySeen: "the endpoint shows a key that is denied; it is not published"
    case .deniedAuthoritySeen:
      "a denied key stands above the endpoint's key in its path: clients refuse every connection there"
    case .caMissing:
      "none of the CAs in ca stands above the endpoint's key, and with match all clients refuse every connection there"
    case .lapsed: "a new key was not seen often enough and is forgotten"
    case .tooManyCandidates:
      "too many new keys wait at once; this one is not counted: an endpoint that shows so many may be in the"
        + " wrong hands"
    case .retired: "an old key was not seen for its grace time and is published no more"
    case .withdrawn:
      "a new key that nobody announced was there for a moment only, or that others do not see, is"
        + " published no more: somebody may have stood between this server and the endpoint; hint: if it is in use, apps"
        + " may be refused, so dial the endpoint from elsewhere, and if it shows the key there, announce it"
    case .undecided:
      "a published key is not seen, and nobody knows whether it is gone, so it stays: an address or vantage point that"
        + " showed it does not answer, or it was there for a moment and the key that is shown now is newer, or had left"
        + " before; hint: see which of them is the servers' key before you deny one"
    case .vantageBlocked(let points):
      "fewer vantage points than the quorum have reached the endpoint for ten minutes; these are there, and do not:"
        + " \(points.joined(separator: ", ")); what they saw has no word against a new key after an hour; hint: is there a firewall"
        + " before the endpoint, or between it and them?"
    case .refused(let reason, _, isDisputed: false):
      "the endpoint is not believed: \(reason); nothing changes"
    case .refused(let reason, _, isDisputed: true):
      "a vantage point is shown a chain that is not believed, and a listed key is shown elsewhere: \(reason); nothing changes"
    case .unreachable(let reason): "the endpoint cannot be asked: \(reason); nothing changes"
    }
  }
}

extension CandidateKey.HoldReason {
  /// The reason, for people.
  public var explanation: String {
    switch self {
    case .vantagePoints:
      "as many as the quorum answer and see other keys, this server among them, or this server does and no quorum of vantage points sees the key"
    case .newIssuer:
      "its CA is neither known here nor named in issuers, and no quorum of vantage points vouches for it"
    case .massChange:
      "too many endpoints changed at once, and no quorum of vantage points vouches for it"
    case .manual: "a person decides about this endpoint's keys"
    }
  }
}

extension CandidateKey.Assent {
  /// The same for people.
  public var explanation: String {
    switch self {
    case .known: "published keys of the endpoint are under its CA"
    case .named: "its CA is named in the configuration"
    case .vouched(let places):
      "a quorum of vantage points sees the key: \(places.sorted().joined(separator: ", "))"
    }
  }
}

/// When an alert by which apps are refused is over: after one good probe. Behind a balancer some probes are good while apps go
/// on being refused. So an alert that came back within the hour takes five good probes in a row, and ten if it did so again.
///
/// Not kept over a restart.
package struct ReturningAlerts: Sendable, Hashable {
  private struct Standing: Hashable {
    var returns = 0
    var good = 0
    /// In Unix seconds.
    var ended: Int64?
  }

  /// By the alerts' identities.
  private var known: [String: Standing] = [:]
  private static let (hour, patience): (Int64, [Int]) = (3600, [1, 5, 10])

  /// None began yet.
  package init() {}

  /// An alert began.
  package mutating func begin(_ identity: String, at now: Int64) {
    known = known.filter { _, one in one.ended.map { abs(now - $0) <= Self.hour } ?? true }
    known[identity] = Standing(returns: known[identity].map { $0.returns + 1 } ?? 0)
  }

  /// Enters a probe that was answered.
  ///
  /// - Parameter isSeen: whether it showed what the alert is about.
  /// - Returns: whether the alert is over.
  package mutating func enter(_ identity: String, isSeen: Bool, at now: Int64) -> Bool {
    var one = known[identity] ?? Standing()
    one.good = isSeen ? 0 : one.good + 1
    let isOver = one.good >= Self.patience[min(one.returns, Self.patience.count - 1)]
    one.ended = isOver ? now : nil
    known[identity] = one
    return isOver
  }
}
