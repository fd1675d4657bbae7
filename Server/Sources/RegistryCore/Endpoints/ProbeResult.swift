import SslPinningRules

/// What one probe of an endpoint showed: one observation for each vantage point and address.
public struct ProbeResult: Sendable, Hashable {
  /// In the order of the request.
  public var observations: [ProbeObservation]
  /// How long it took; zero if it was not measured.
  public var duration: Duration = .zero
  /// Places that were asked for a kind of key, and neither proved one nor refused the kind. Those that an observation
  /// tells of are not among them. A key of that kind that was seen there before is not gone by such silence.
  public var untold: Set<Place> = []
  /// The kinds of key that every place was asked for, by their words; `nil` if all kinds count as asked for.
  public var kinds: Set<String>?
  /// Addresses that the name has and that this server did not dial: they are not gone.
  public var leftOut: Set<String> = []
  /// The vantage points that had too many questions to answer all of these.
  public var overasked: Set<String> = []
  /// Those whose answers this server was too busy for.
  public var delayed: Set<String> = []
  /// Those that got no answer to a question for a kind of key, but had one within the hour, by the kind.
  public var withheld: [String: Set<String>] = [:]
  /// Those that were shown a key, and were refused every question for a kind, by the kind: they see none of it.
  public var lacking: [String: Set<String>] = [:]
  /// Those that answered, but were not shown a valid chain: the endpoint could not be reached from there, ended the
  /// handshake, or was too slow.
  public var unreached: Set<String> = []

  /// A probe.
  public init(observations: [ProbeObservation]) { self.observations = observations }
}

/// What one address of an endpoint showed to one vantage point.
public struct ProbeObservation: Sendable, Hashable {
  /// The result.
  public enum Outcome: Sendable, Hashable {
    /// The chain was valid and the name was right.
    case accepted(SeenChain)
    /// The endpoint answered with a chain that proves nothing: expired, self-signed, from an unknown
    /// issuer, for another name. `presented` is the leaf's pin, if readable; it is reported and never
    /// published.
    case refused(reason: String, presented: SPKIPin?)
    /// The endpoint could not be probed: no address, no connection, no handshake in time.
    case unreachable(reason: String)
  }

  /// The vantage point's name; ``direct`` for this server itself.
  public var vantage: String
  /// The address that was dialled, with its port; empty if a proxy resolved the name, or there was none.
  public var address: String
  /// The kind of key that was asked for, as `rsa`; empty if the endpoint chose.
  public var keyType = ""
  /// The result.
  public var outcome: Outcome
  /// Why it was not accepted, in a word, for metrics; `nil` if that is not known.
  public var cause: ProbeFailureCause?
  /// Whether the resolver did not answer in time, and an address from an earlier answer was dialled.
  public var isRemembered = false

  /// The name of the vantage point that is this server itself.
  public static let direct = "direct"

  /// An observation.
  public init(
    vantage: String = direct, address: String = "", outcome: Outcome,
    cause: ProbeFailureCause? = nil
  ) {
    self.vantage = vantage
    self.address = address
    self.outcome = outcome
    self.cause = cause
  }
}

/// A validated path, reduced to what decisions and people need.
public struct SeenChain: Sendable, Hashable {
  /// From the leaf to the anchor; never empty.
  public let path: [SeenCertificate]
  /// Whether the handshake that showed it was finished. Up to TLS 1.2 nothing before that binds the chain to the server:
  /// its signature covers the key exchange alone (RFC 5246 sections 7.4.3 and 7.4.9), so whoever stands between can put
  /// in another chain for the same key.
  public var isConfirmed = true

  /// A chain; the leaf is a parameter of its own, so that a chain is never empty.
  public init(leaf: SeenCertificate, above: [SeenCertificate] = []) { path = [leaf] + above }

  /// The leaf's certificate.
  public var leaf: SeenCertificate { path[0] }

  /// The key that issued the leaf; `nil` if the leaf itself is the anchor.
  public var issuer: SPKIPin? { path.count > 1 ? path[1].pin : nil }

  /// The keys above the leaf, from its issuer to the anchor; empty if the leaf is the anchor.
  var above: [SPKIPin] { path.dropFirst().map(\.pin) }

  /// The keys of the issuer and the anchor, by which its CA is known; empty if the leaf is the anchor.
  package var authorities: [SPKIPin] { Self.authorities(of: above) }

  /// The issuer and the anchor among the keys above a leaf.
  static func authorities(of above: [SPKIPin]) -> [SPKIPin] {
    above.isEmpty ? [] : [above[0], above[above.count - 1]]
  }
}

/// One certificate of a validated path. Times are Unix seconds.
public struct SeenCertificate: Sendable, Hashable {
  /// The SHA-256 of its SubjectPublicKeyInfo.
  public var pin: SPKIPin
  /// Its subject's name, for people.
  public var subject: String
  /// Its issuer's name, for people.
  public var issuer: String
  /// From when it is valid.
  public var notBefore: Int64
  /// Until when it is valid; 0 if that is not known.
  public var notAfter: Int64

  /// A certificate.
  public init(
    pin: SPKIPin, subject: String = "", issuer: String = "", notBefore: Int64 = 0,
    notAfter: Int64 = 0
  ) {
    self.pin = pin
    self.subject = subject
    self.issuer = issuer
    self.notBefore = notBefore
    self.notAfter = notAfter
  }

  /// Until when it is valid; `nil` if that is not known.
  package var expiry: Int64? { notAfter == 0 ? nil : notAfter }
}

extension ProbeResult {
  /// The leaf certificates that it proved, each once.
  package var leaves: [SeenCertificate] {
    var seen: Set<SeenCertificate> = []
    return observations.compactMap { observation in
      guard case .accepted(let chain) = observation.outcome else { return nil }
      return seen.insert(chain.leaf).inserted ? chain.leaf : nil
    }
  }

  /// The vantage points that were asked for a kind of key and got no answer, by the kind.
  var unheard: [String: Set<String>] {
    var (unheard, heard): ([String: Set<String>], [String: Set<String>]) = ([:], [:])
    for observation in observations where !observation.keyType.isEmpty {
      if observation.isAccepted {
        heard[observation.keyType, default: []].insert(observation.vantage)
      } else {
        unheard[observation.keyType, default: []].insert(observation.vantage)
      }
    }
    for (kind, vantages) in heard { unheard[kind]?.subtract(vantages) }
    return unheard
  }

  /// When each accepted chain is valid as a whole, in Unix seconds; an unknown end counts as never.
  package var validities: [(from: Int64, to: Int64)] {
    observations.compactMap { observation in
      guard case .accepted(let chain) = observation.outcome else { return nil }
      return (
        chain.path.map(\.notBefore).max() ?? 0, chain.path.compactMap(\.expiry).min() ?? .max
      )
    }
  }

  /// One accepted observation by this server itself, of a chain of which only the leaf's pin is known.
  public static func accepted(_ pin: SPKIPin) -> ProbeResult {
    ProbeResult(observations: [
      ProbeObservation(outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin))))
    ])
  }

  /// One observation that proves nothing.
  public static func refused(reason: String, presented: SPKIPin?) -> ProbeResult {
    ProbeResult(observations: [
      ProbeObservation(outcome: .refused(reason: reason, presented: presented))
    ])
  }

  /// One observation that failed.
  public static func unreachable(reason: String) -> ProbeResult {
    ProbeResult(observations: [ProbeObservation(outcome: .unreachable(reason: reason))])
  }
}

/// Probes endpoints. The server's prober connects over TLS; tests use scripted ones.
public protocol EndpointProber: Sendable {
  /// Probes once from every vantage point at every address, within the configured time.
  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult
  /// The same for one of several that decide about the endpoint, each by its own probes: documents may share it.
  func probe(_ endpoint: WatchedEndpoint, for target: String) async -> ProbeResult
}

extension EndpointProber {
  /// As for anybody.
  public func probe(_ endpoint: WatchedEndpoint, for target: String) async -> ProbeResult {
    await probe(endpoint)
  }
}

/// Why a probe showed no trustworthy key; the metrics' label `cause`.
public enum ProbeFailureCause: String, CaseIterable, Sendable, Hashable {
  /// The name has no address.
  case dns
  /// Nobody listens there.
  case refused
  /// There is no route to it, from here or from a vantage point.
  case unreachable
  /// The time was up.
  case timeout
  /// The TLS handshake failed.
  case handshake
  /// The chain does not end in an anchor, or is not valid now.
  case chain
  /// The certificate is for another name.
  case name
  /// The vantage point itself did not answer or prove its identity; the endpoint was never asked.
  case vantage
  /// Vantage points, or addresses, showed different things.
  case disagreement
  /// A fault of this server.
  case other
}

/// The places from which a probe got an answer. It tells whether a key is gone, or the places that showed it could
/// merely not be probed.
///
/// - A key is missed if every place that showed it answers, and none shows it. An address that never
///   answered never showed a key, so it keeps none listed.
/// - Only a valid chain for the right name is an answer. A refused chain is as good as silence.
/// - If the name has more addresses than are probed at a time, never all of them answer at once: then the last answer
///   of one that is left out counts.
/// - If the name no longer has an address, the addresses that its vantage point got answer for it.
/// - A silent vantage point keeps a key listed only if this server never saw the key itself, or if regions
///   show different keys. Otherwise an attacker could keep a key listed by cutting a vantage point off.
/// - A short-lived key that a quorum of vantage points saw is not missed while fewer than a quorum answer: whoever
///   leads this server elsewhere, and cuts the points off, could have a key in use withdrawn. A middleman whom this server
///   alone meets never has their word.
/// - If the resolver was silent and remembered addresses were used, it is unknown which addresses the name has:
///   then this server itself counts as silent.
struct ProbeCoverage {
  private let asked: Set<Place>
  private let untold: Set<Place>
  private let kinds: Set<String>?
  private let leftOut: Set<String>
  private let answered: Set<Place>
  private let answering: Set<String>
  private let context: DecisionContext

  init(_ probe: ProbeResult, _ context: DecisionContext) {
    let silenced = Set(probe.observations.filter(\.isRemembered).map(\.vantage))
    asked = Set(probe.observations.map(\.place))
    (untold, kinds, leftOut) = (probe.untold, probe.kinds, probe.leftOut)
    answered = Set(
      probe.observations.filter { $0.isAccepted && !silenced.contains($0.vantage) }.map(\.place))
    answering = Set(answered.map(\.vantage))
    self.context = context
  }

  /// Whether a key that this probe does not show was missed. A key from an older record, which does not say where
  /// it was seen, is missed if every place that was probed answered.
  func misses(_ key: KnownKey) -> Bool {
    guard !needsPoints(for: key) else { return false }
    let places = key.seenAt.isEmpty ? asked.union(untold) : Set(key.seenAt.keys)
    let isSeenHere = places.contains { $0.vantage == ProbeObservation.direct }
    return places.allSatisfy { place in
      let isHere = place.vantage == ProbeObservation.direct
      return !context.vantages.contains(place.vantage) || !isHere && isSeenHere && !context.isUnion
        || answered.contains(place) || isGone(place)
        || leftOut.contains(place.ofAnyType.address) && key.answered.contains(place)
    }
  }

  /// Whether a quorum of vantage points saw a short-lived key, and too few of them answer to say that it is gone. What
  /// they saw an hour before anybody saw it last is no word for it: it was this server alone that met it since.
  private func needsPoints(for key: KnownKey) -> Bool {
    guard key.isShortLived else { return false }
    let points = context.vantages.subtracting([ProbeObservation.direct])
    let witnesses = key.seenAt.filter { key.lastSeen - $0.value <= EndpointKeys.lastWord }
    let silent = key.seenAt.keys.filter { !answered.contains($0) && !isGone($0) }
    // One that gets no answer to a question for the key's kind says nothing of it, whatever else it is shown.
    let speaking = answering.subtracting(silent.map(\.vantage))
      .subtracting(context.silent(about: key.seenAt.keys))
    return points.intersection(witnesses.keys.map(\.vantage)).count >= context.quorum
      && points.intersection(speaking).count < context.quorum
  }

  /// Whether this server itself got an answer from it, or was refused its kind of key.
  func hasAnsweredHere(_ place: Place) -> Bool {
    place.vantage == ProbeObservation.direct && (answered.contains(place) || isGone(place))
  }

  /// Whether an address no longer belongs to the name, or no longer has that kind of key: its vantage point answers,
  /// and got others. Who is not asked for a kind may have it.
  func isGone(_ place: Place) -> Bool {
    (place.keyType.isEmpty || kinds?.contains(place.keyType) ?? true)
      && answering.contains(place.vantage) && !asked.contains(place) && !untold.contains(place)
      && !(place.vantage == ProbeObservation.direct && leftOut.contains(place.ofAnyType.address))
      && (!asked.contains(place.ofAnyType) || answered.contains(place.ofAnyType))
  }
}

extension ProbeObservation {
  /// Where the observation was made.
  var place: Place { Place(vantage: vantage, address: address, keyType: keyType) }

  /// Whether the chain was valid and the name was right.
  package var isAccepted: Bool { if case .accepted = outcome { true } else { false } }
}

/// A place where a key can be seen: one address of an endpoint, probed from one vantage point, perhaps for one kind of
/// key.
public struct Place: Sendable, Hashable, Comparable {
  /// The vantage point's name; ``ProbeObservation/direct`` for this server itself.
  public let vantage: String
  /// The address with its port, empty if a proxy looked the name up; then, behind a space, the kind of key that was asked
  /// for, if the endpoint did not choose: a key of one kind is gone only if a probe that asks for that kind misses it.
  public let address: String

  /// A place.
  public init(vantage: String, address: String, keyType: String = "") {
    self.vantage = vantage
    self.address = keyType.isEmpty ? address : "\(address) \(keyType)"
  }

  /// The kind of key that was asked for; empty if the endpoint chose.
  var keyType: String { String(address.drop { $0 != " " }.dropFirst()) }

  /// The same where the endpoint chooses its kind of key.
  var ofAnyType: Place {
    Place(vantage: vantage, address: String(address.prefix { $0 != " " }))
  }

  /// Stands for the places of a path if no record, or only an older one, says where it was seen.
  static let unknown = Place(vantage: "", address: "")

  public static func < (left: Place, right: Place) -> Bool {
    (left.vantage, left.address) < (right.vantage, right.address)
  }
}

/// A prober that resolves names.
package protocol ResolvingProber: EndpointProber {
  /// Calls `tell` when a host that could not be resolved in time turns out to have addresses.
  func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void)
}
