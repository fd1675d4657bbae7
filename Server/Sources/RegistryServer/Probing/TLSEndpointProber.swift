import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Probes endpoints over TLS, from here and through proxies.
///
/// - From here every address of the name is probed, IPv4 and IPv6, unless the first that answers was
///   asked for; a proxy looks the name up where
///   it stands, so that whoever sits between this server and the endpoint shows.
/// - Accepted is only a leaf whose chain ends in an anchor and that carries the endpoint's name in
///   its subjectAltName: what a client without pins would talk to. The pins are then that path's.
/// - The name is sent and checked even where an address is dialled instead of looked up. A proxy is
///   then asked for that address too.
/// - An address or a proxy that cannot be reached hides nothing of the others; a machine without IPv6
///   cannot reach those addresses, and says so.
/// - Where the resolver does not answer in time, the addresses of the last ten minutes are probed. What
///   they show proves that a known key is still in use, and never a new one: a probe that confirms has
///   looked the name up itself.
/// - Every place is asked for the kinds of key of `tls.key_types` as well. A refused handshake means that it has no such
///   key, or no longer. Silence means nothing: neither where one was proved, nor at another place, which may have one and
///   cannot be heard. If no place has proved the kind since this server began, silence is not even told.
/// - If addresses of a name showed different keys when it was last probed, a vantage point is asked for two of them, too, in
///   turn and new keys first, and for one more that points alone reach: what it sees at another server of a fleet is then no evidence against a server's key.
///   Not for more: whoever gives this server many addresses must not have the points refuse what they are asked (429), which
///   would be silence.
/// - A vantage point that was silent is given twice what its last answer took, or a second, for the next minute, so that what the others
///   prove does not wait for it; then it has its whole time again. See ``SilentRoutes``.
/// - Own anchors replace the system's; see ``TrustAnchorCache``.
/// - An endpoint that asks for a client certificate gets the one of `tls.client_certificate`, or none: it has proved its
///   own key before it refuses, but for plain RSA key exchange of TLS 1.2.
public struct TLSEndpointProber: EndpointProber, ResolvingProber {
  private let probe: TLSProbe
  private let anchors: TrustAnchorCache
  private let limits: ProbeLimits
  private let routes: [ProbeRoute]
  private let vantages: [String]
  private let resolver: NameResolver
  private let cache = VerdictCache()
  private let judgingTimes: @Sendable () -> [Int64]
  /// Vantage points that have just been silent.
  private let silent = Locked(SilentRoutes())
  /// The keys that an endpoint showed from here when its name was last looked up.
  private let shown = Locked<[String: Set<SPKIPin>]>([:])
  /// The addresses of an endpoint if they showed different keys from here, by who decides about it.
  private let fleets = Locked<[String: Fleet]>([:])
  /// Until when a point is not asked for addresses of an endpoint, since it had too many questions: whoever stands before this
  /// server could keep the points busy otherwise, with two addresses and new keys. The others are asked: one point that is
  /// out of order, or lies, says nothing for them. By the endpoints' ids and the points' routes, in milliseconds of uptime.
  private let crowded = Locked<[String: [Int: Int64]]>([:])
  private let keyTypes: [CertificateKeyKind]
  /// Where an endpoint has proved a key of a kind that it was asked for.
  private let kindsProved = Locked<[String: Set<AskedPlace>]>([:])
  /// Which questions for kinds of key points answered.
  private let answered: AnsweredQuestions

  /// An observer with the anchors, the vantage points and the time-out of a configuration.
  ///
  /// - Parameter times: at one of which the endpoints' chains must be valid, in Unix seconds, the one to be tried first
  ///   in front; none: the machine's clock.
  /// - Throws: ``AnchorsError``.
  public init(
    _ tls: TLSConfiguration, judgingAt times: @escaping @Sendable () -> [Int64] = { [] }
  ) throws(AnchorsError) {
    try self.init(tls, resolver: NameResolver(), answered: AnsweredQuestions(), judgingAt: times)
  }

  /// As above, with a resolver of one's own, and with what one before it remembered.
  package init(
    _ tls: TLSConfiguration, resolver: NameResolver = NameResolver(),
    answered: AnsweredQuestions = AnsweredQuestions(),
    judgingAt times: @escaping @Sendable () -> [Int64] = { [] }
  ) throws(AnchorsError) {
    self.answered = answered
    judgingTimes = times
    self.resolver = resolver
    anchors = try TrustAnchorCache(file: tls.anchors)
    limits = ProbeLimits(total: tls.timeout)
    let direct: ProbeRoute = tls.addresses == .all ? .direct : .directInTurn
    var routes = [direct]
    for point in tls.vantagePoints { routes.append(try point.route()) }
    self.routes = routes
    vantages = [ProbeObservation.direct] + tls.vantagePoints.map(\.name)
    keyTypes = tls.keyTypes
    let identity = try tls.clientIdentity
    do throws(ProbeError) {
      probe = try TLSProbe(
        anchors: anchors.current(), resolver: resolver, threads: TLSProbe.usefulThreads,
        as: identity)
    } catch {
      throw .unusable(path: tls.anchors ?? "the TLS probe", reason: "\(error)")
    }
  }

  package func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    resolver.whenFoundLate(tell)
  }

  public func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    await probe(endpoint, for: endpoint.id)
  }

  public func probe(_ endpoint: WatchedEndpoint, for target: String) async -> ProbeResult {
    let begun = MonotonicReading.milliseconds()
    let hurried = silent.withLock { $0.routes(to: endpoint.id, of: routes.indices, at: begun) }
    let addresses = endpoint.address.map {
      [Endpoint(address: $0.description, port: endpoint.port)]
    }
    let surveyed = await probe.survey(
      endpoint.fqdn, port: endpoint.port, addresses: addresses ?? [], from: routes,
      addressesThere: placesToAsk(of: endpoint, for: target, at: begun), asking: keyTypes,
      hurried: hurried,
      limits: limits, trusting: anchors.current(), cache: cache,
      at: judgingTimes())
    let refusing = Set(surveyed.filter(\.isRefusedAsTooMany).map(\.route))
    if !refusing.isEmpty {
      crowded.withLock { crowded in
        for route in refusing { crowded[endpoint.id, default: [:]][route] = begun + 60_000 }
      }
    }
    let (findings, untold) = heed(surveyed, at: endpoint)
    let known = note(findings, at: endpoint, for: target)
    let isSeenFromHere = findings.contains { $0.route == 0 && !$0.leafPins.isEmpty }
    silent.withLock { silent in
      for finding in findings
      where finding.route != 0 && finding.keyType == nil && !finding.wasHeldUp
        && !finding.isRefusedAsTooMany
      {
        guard let answer = Self.answer(of: finding, isSeenFromHere: isSeenFromHere) else {
          continue
        }
        silent.note(
          finding.route, to: endpoint.id, answer, in: finding.took,
          wasHurried: hurried[finding.route] != nil, at: begun)
      }
    }
    var result = ProbeResult(
      observations: findings.map { finding in
        let outcome: ProbeObservation.Outcome =
          finding.isRemembered && finding.route == 0
            && !finding.leafPins.allSatisfy(known.contains)
          ? .unreachable(reason: Self.unconfirmed) : ProbeObservation.Outcome(finding)
        var observation = ProbeObservation(
          vantage: vantages[finding.route], address: finding.address?.description ?? "",
          outcome: outcome, cause: Self.cause(finding, outcome, isSeenFromHere: isSeenFromHere))
        observation.isRemembered = finding.isRemembered && finding.route == 0
        observation.keyType = finding.keyType?.word ?? ""
        return observation
      })
    result.untold = untold
    result.kinds = Set(keyTypes.map(\.word))
    let leftOut = findings.first { $0.route == 0 }?.leftOut ?? []
    result.leftOut = Set(leftOut.map(\.description))
    result.overasked = Set(refusing.map { vantages[$0] })
    // Whoever stands before this server may keep it busy: it was too late for their answers.
    result.delayed = Set(
      surveyed.filter { $0.route != 0 && $0.wasHeldUp }.map { vantages[$0.route] })
    result.withheld = answered.note(surveyed, of: endpoint, by: vantages, at: begun)
    result.lacking = lacking(surveyed)
    result.unreached = Set(
      surveyed.filter { $0.route != 0 && $0.wasUnreached }.map { vantages[$0.route] })
    return result
  }

  /// The addresses to ask points for, by their routes.
  private func placesToAsk(
    of endpoint: WatchedEndpoint, for target: String, at now: Int64
  ) -> [Int: [Endpoint]] {
    let places = fleets.withLock { $0[target]?.ask() ?? [] }
    guard !places.isEmpty else { return [:] }
    let crowded = crowded.withLock { $0[endpoint.id] ?? [:] }
    let asked = routes.indices.filter { crowded[$0] ?? .min < now }
    return Dictionary(uniqueKeysWithValues: asked.map { ($0, places) })
  }

  private static let unconfirmed =
    "the resolver did not answer in time, and the address it gave last shows another key; "
    + "hint: that key counts once the name resolves"

  /// Whether a vantage point was heard; `nil` if that is not known. One that got the request and did not answer counts as
  /// silent only if the endpoint is well: otherwise it may wait for the endpoint.
  private static func answer(
    of finding: ProbeFinding, isSeenFromHere: Bool
  ) -> SilentRoutes.Answer? {
    guard case .failure(let error) = finding.outcome else { return .heard }
    switch finding.blame {
    case .proxy: return .silent
    case .proxyOrServer where isSeenFromHere:
      return error == .timeout(.handshake) ? .empty : .silent
    case .proxyOrServer: return nil
    case .server: return .heard
    }
  }

  /// Why an observation failed. A tunnel that carries nothing is a time-out: whether the point or the endpoint is to blame
  /// shows at other endpoints (``VantageMetrics``).
  private static func cause(
    _ finding: ProbeFinding, _ outcome: ProbeObservation.Outcome, isSeenFromHere: Bool
  ) -> ProbeFailureCause? {
    switch (outcome, finding.outcome) {
    case (.accepted, _): nil
    case (_, .failure(let error)):
      answer(of: finding, isSeenFromHere: isSeenFromHere) == .silent
        ? .vantage : ProbeFailureCause(error)
    case (.unreachable, .success): .dns
    case (_, .success(.untrusted(_, _, let isChainGood))): isChainGood ? .name : .chain
    case (_, .success(.trusted)): .chain
    }
  }

  /// A place that was asked for a kind of key.
  private struct AskedPlace: Hashable {
    let route: Int
    let address: Endpoint?
    let kind: CertificateKeyKind

    init?(_ finding: ProbeFinding) {
      guard let kind = finding.keyType else { return nil }
      (route, address, self.kind) = (finding.route, finding.address, kind)
    }
  }

  /// Leaves out what came of asking places for kinds of key that they do not have, or that they had shown already.
  ///
  /// - Returns: what counts; and the places left out that did not say whether they have a key of the kind.
  private func heed(
    _ findings: [ProbeFinding], at endpoint: WatchedEndpoint
  ) -> ([ProbeFinding], untold: Set<Place>) {
    kindsProved.withLock { proved in
      let before = proved[endpoint.id] ?? []
      let shown = findings.filter { finding in
        !finding.leafPins.isEmpty
          && !findings.contains {
            $0.keyType == nil && ($0.route, $0.address) == (finding.route, finding.address)
              && $0.leafPins == finding.leafPins
          }
      }
      var now = Set(shown.compactMap { AskedPlace($0) })
      let kinds = Set(now.union(before).map(\.kind))
      var untold: Set<Place> = []
      let heeded = findings.filter { finding in
        guard let place = AskedPlace(finding) else { return true }
        switch finding.outcome {
        case .success(.trusted): return now.contains(place)
        case .failure(.handshake): return false
        case .success(.untrusted), .failure:
          if before.contains(place) { now.insert(place) }
          if case .failure = finding.outcome, kinds.contains(place.kind) { return true }
          if before.contains(place) { return true }
          untold.insert(
            Place(
              vantage: vantages[finding.route], address: finding.address?.description ?? "",
              keyType: place.kind.word))
          return false
        }
      }
      proved[endpoint.id] = now.isEmpty ? nil : now
      return (heeded, untold)
    }
  }

  /// The vantage points that were shown a key and were refused every question for a kind, by the kind.
  private func lacking(_ findings: [ProbeFinding]) -> [String: Set<String>] {
    let there = Set(findings.filter { $0.keyType == nil && !$0.leafPins.isEmpty }.map(\.route))
    var (refused, others): ([String: Set<String>], [String: Set<String>]) = ([:], [:])
    for finding in findings where finding.route != 0 && there.contains(finding.route) {
      guard let kind = finding.keyType?.word else { continue }
      if case .failure(.handshake) = finding.outcome {
        refused[kind, default: []].insert(vantages[finding.route])
      } else {
        others[kind, default: []].insert(vantages[finding.route])
      }
    }
    for (kind, points) in others { refused[kind]?.subtract(points) }
    return refused
  }

  /// Keeps what a probe with an answer of the resolver showed.
  ///
  /// - Returns: the keys that were shown by such looks up to now.
  private func note(
    _ findings: [ProbeFinding], at endpoint: WatchedEndpoint, for target: String
  ) -> Set<SPKIPin> {
    let here = findings.filter { $0.route == 0 && !$0.isRemembered }
    let fresh = here.flatMap(\.leafPins)
    var places: [Endpoint: Set<SPKIPin>] = [:]
    for finding in here {
      guard let address = finding.address, let pin = finding.leafPins.first else { continue }
      places[address, default: []].insert(pin)
    }
    let isSeen = here.contains { $0.keyType == nil && !$0.leafPins.isEmpty }
    var told: [Fleet.Told] = []
    for finding in findings {
      guard let address = finding.dialledThere, let pin = finding.leafPins.first else { continue }
      let word = Fleet.Told(
        place: Endpoint(address: address, port: endpoint.port), route: finding.route, keys: [pin])
      if let known = told.firstIndex(where: word.isOfSamePlace) {
        told[known].keys.insert(pin)
      } else {
        told.append(word)
      }
    }
    fleets.withLock { $0[target] = Fleet(isSeen ? places : nil, told: told, after: $0[target]) }
    return shown.withLock { shown in
      if !fresh.isEmpty { shown[endpoint.id] = Set(fresh) }
      return shown[endpoint.id] ?? []
    }
  }
}

extension ProbeFinding {
  /// Whether a point had too many questions to take this one.
  var isRefusedAsTooMany: Bool {
    if case .failure(.proxy(.refused(status: 429))) = outcome { true } else { false }
  }

  /// Whether the point is there, and saw nothing that counts.
  fileprivate var wasUnreached: Bool {
    guard keyType == nil else { return false }
    return switch outcome {
    case .success(.trusted): false
    case .success(.untrusted): true
    // One that took the question and never answered is away itself: its own answer comes within seconds.
    case .failure(.timeout(.tunnel)): false
    case .failure: blame != .proxy
    }
  }

  /// The key that was proved, if one was.
  var leafPins: [SPKIPin] {
    guard case .success(.trusted(let path)) = outcome, let leaf = path.first else { return [] }
    return [leaf.pin]
  }
}

extension ProbeObservation.Outcome {
  fileprivate init(_ finding: ProbeFinding) {
    switch finding.outcome {
    case .success(.trusted(let path)):
      let certificates = path.map { SeenCertificate($0) }
      guard let leaf = certificates.first else {
        self = .refused(reason: "the path is empty", presented: nil)
        return
      }
      var chain = SeenChain(leaf: leaf, above: Array(certificates.dropFirst()))
      chain.isConfirmed = finding.isFinished
      self = .accepted(chain)
    case .success(.untrusted(let reason, let leaf, _)):
      self = .refused(reason: reason, presented: leaf)
    case .failure(let error): self = .unreachable(reason: "\(error)")
    }
  }
}

extension SeenCertificate {
  fileprivate init(_ certificate: PathCertificate) {
    self.init(
      pin: certificate.pin, subject: certificate.subject, issuer: certificate.issuer,
      notBefore: certificate.validity.notBefore, notAfter: certificate.validity.notAfter)
  }
}
