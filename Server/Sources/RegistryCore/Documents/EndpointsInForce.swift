import SslPinningRules

/// The endpoints of a document that are in force, and what probes showed of them since the start.
struct EndpointsInForce: Sendable {
  /// Those that are watched, in the order configured.
  private(set) var list: [WatchedEndpoint]
  private(set) var ids: Set<String>
  /// By the endpoints' ids.
  private(set) var lastProbes: [String: LastProbe] = [:]
  /// Those that were not probed since the start, and are to be.
  private(set) var awaited: Set<String>
  /// Whether others are watched, or paused, than when somebody last asked.
  var isNews = false
  private var paused: Set<String> = []
  /// Those that have a published key.
  private var listed = PatternIndex()
  /// What clients ask for, by the endpoints' ids.
  private var terms: [String: HostTerms] = [:]

  init(_ configured: [WatchedEndpoint]) {
    list = configured
    ids = Set(configured.map(\.id))
    awaited = ids
    terms = HostTerms.inEffect(among: list)
  }

  /// Goes by what a state says of them.
  mutating func follow(_ state: DocumentState, configured: [WatchedEndpoint]) {
    let before = (list, paused)
    list = state.endpoints(configured: configured)
    let inForce = state.inForce(list)
    terms = HostTerms.inEffect(among: inForce)
    paused = Set(state.overrides.filter(\.value.isPaused).keys)
    if before != (list, paused) { isNews = true }
    ids = Set(list.map(\.id))
    awaited = ids.filter { lastProbes[$0] == nil && !state.isPaused($0) }
    listed = PatternIndex()
    for endpoint in inForce where state.keysByEndpoint[endpoint.id]?.keys.isEmpty == false {
      listed.insert(endpoint.id, endpoint.patterns)
    }
  }

  /// Takes down that an endpoint was probed.
  ///
  /// - Returns: how many probes in a row came to nothing, this one included.
  mutating func note(_ probe: ProbeResult, of id: String, hasFailed: Bool, at now: Int64) -> Int {
    let failures = hasFailed ? (lastProbes[id]?.failures ?? 0) + 1 : 0
    awaited.remove(id)
    lastProbes[id] = LastProbe(at: now, probe: probe, failures: failures, after: lastProbes[id])
    return failures
  }

  /// Forgets what probes showed here: another server watches, and what is shown by now is for that one to know.
  mutating func forgetProbes() { lastProbes = [:] }

  /// An endpoint has a published key.
  mutating func list(_ endpoint: WatchedEndpoint) { listed.insert(endpoint.id, endpoint.patterns) }

  /// What a decision about an endpoint takes into account.
  func context(
    of endpoint: WatchedEndpoint, _ probe: ProbeResult, in state: DocumentState,
    beside others: [DocumentListing] = [], _ settings: DocumentSettings, isMassChange: Bool
  ) -> DecisionContext {
    var context = DecisionContext()
    // What was said of it since whoever probes was told of it counts at once.
    context.approval =
      state.overrides[endpoint.id]?.approval ?? endpoint.approval ?? settings.approval
    context.vantages = settings.vantages
    context.quorum = settings.quorum
    context.isUnion = endpoint.isUnion
    // Apps accept any key under a CA that vouches alone, so a person's word for it would protect nothing.
    let terms = self.terms[endpoint.id] ?? endpoint.terms
    context.issuers = settings.issuers.union(endpoint.issuers.pins).union(terms.vouching)
    context.denied = state.deniedPins
    context.demanded = terms.demanded
    context.isMassChange = settings.holdsMassChanges && isMassChange
    guard state.keysByEndpoint[endpoint.id]?.isUnseen ?? true else { return context }
    let lists =
      [DocumentListing(index: listed, keys: state.keysByEndpoint, excepted: endpoint.id)] + others
    let meant = lists.filter { $0.lists(endpoint.patterns) }
    context.isListed = !meant.isEmpty
    addListed(probe, of: endpoint, by: meant, to: &context)
    return context
  }

  /// What the lists that speak of the hosts of an endpoint have of what a probe of it shows.
  private func addListed(
    _ probe: ProbeResult, of endpoint: WatchedEndpoint, by lists: [DocumentListing],
    to context: inout DecisionContext
  ) {
    // A neighbour's key says nothing of a host, and what is published counts for each of them. What left was the hosts' own.
    let hosts = lists.reduce(into: Set<HostPattern>()) {
      $0.formUnion($1.hosts(of: endpoint.patterns))
    }
    func isListed(_ has: (EndpointKeys) -> Bool) -> Bool {
      lists.contains { $0.left(endpoint.patterns, where: has) }
        || hosts.allSatisfy { host in lists.contains { $0.speaks(of: host, where: has) } }
    }
    let sightings = lists.isEmpty ? [] : ObservedKey.all(in: probe)
    context.listedPins = Set(
      sightings.map(\.pin).filter { pin in isListed { $0.keys.contains { $0.pin == pin } } })
    context.copiedPins = context.listedPins.filter { pin in
      lists.contains {
        $0.lists(endpoint.patterns) { other in
          other.keys.contains { $0.pin == pin }
            && other.authorities.keys.elementsEqual([EndpointKeys.unknownAuthority])
        }
      }
    }
    context.listedAuthorities = Set(
      sightings.flatMap(\.chain.authorities).filter { pin in
        isListed { $0.authorities[pin] != nil }
      })
  }
}

/// What a document made of a probe, as far as the next probes depend on it.
package struct EnteredProbe: Sendable, Equatable {
  /// Whether a key waits for more probes.
  package var isWaiting = false
  /// Whether a key may be about to be withdrawn.
  package var isDoubtful = false
  /// Whether the endpoint changed, so that others should be probed now: see ``MassChangeDetector``.
  package var concernsOthers = false
}

/// What the last probe of an endpoint showed, for people. Not kept across restarts.
public struct LastProbe: Sendable, Hashable {
  /// When, in Unix seconds.
  public var at: Int64
  /// What each vantage point saw at each address.
  public var probe: ProbeResult
  /// How many probes in a row came to nothing, this one included.
  public var failures: Int
  /// The leaves that the last probe proved which proved any: one that fails says nothing of them.
  package var leaves: [SeenCertificate]
  /// Those of the last ten probes that proved any: behind a balancer, a server that was forgotten shows itself now and then.
  package var recent: [SeenCertificate] { leaves + past.map(\.leaf) }
  private struct Past: Hashable {
    var leaf: SeenCertificate
    var missed: Int
  }
  private var past: [Past] = []
  private static let mostMissed = 10
  /// When a probe last came to something, in Unix seconds; `nil` if none has.
  package var lastSuccess: Int64?

  /// A probe.
  ///
  /// - Parameter last: the one before.
  public init(at: Int64, probe: ProbeResult, failures: Int, after last: LastProbe? = nil) {
    (self.at, self.probe, self.failures) = (at, probe, failures)
    let shown = Array(probe.leaves)
    leaves = shown.isEmpty ? last?.leaves ?? [] : shown
    past = last?.past ?? []
    if !shown.isEmpty {
      past = (past + (last?.leaves ?? []).map { Past(leaf: $0, missed: 0) })
        .filter { !shown.contains($0.leaf) && $0.missed < Self.mostMissed }
        .map { Past(leaf: $0.leaf, missed: $0.missed + 1) }
    }
    lastSuccess = failures == 0 ? at : last?.lastSuccess
  }
}
