import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// What this server knows of the keys of all endpoints at one moment, to tell reports apart by.
struct KeyKnowledge: Sendable {
  private struct Holder {
    let patterns: [HostPattern]
    /// Since when a published key is known, in Unix seconds; `nil` for one that waits.
    let since: Int64?
  }

  private var holders: [SPKIPin: [Holder]] = [:]
  private var denied: Set<SPKIPin> = []
  private var issuers: Set<String> = []
  /// When the endpoints of a pattern were probed with success; `nil` inside if one was not.
  private var probes: [HostPattern: Int64?] = [:]
  private(set) var endpoints = 0
  /// The hosts that documents speak of, also those that people added, and those whose endpoint left the configuration.
  private(set) var listed = ListedHosts([])

  /// Nothing is known.
  init() {}

  /// All that a document knows.
  mutating func add(_ document: DocumentSnapshot) {
    denied.formUnion(document.state.deniedPins)
    for endpoint in document.endpoints {
      let last = document.lastProbes[endpoint.id]
      note(probed: last?.lastSuccess, endpoint.patterns)
      for observation in last?.probe.observations ?? [] {
        guard case .accepted(let chain) = observation.outcome else { continue }
        issuers.insert(ReportText.cleaned(chain.leaf.issuer))
      }
    }
    for endpoint in document.endpoints + document.state.orphans {
      for pattern in endpoint.patterns { listed.insert(pattern) }
      guard let keys = document.state.keysByEndpoint[endpoint.id] else { continue }
      for key in keys.keys { note(key.pin, listedSince: key.firstSeen, endpoint.patterns) }
      for (pin, candidate) in keys.candidates {
        note(pin, listedSince: nil, endpoint.patterns)
        issuers.insert(ReportText.cleaned(candidate.chain.leaf.issuer))
      }
    }
  }

  mutating func note(_ pin: SPKIPin, listedSince since: Int64?, _ patterns: [HostPattern]) {
    holders[pin, default: []].append(Holder(patterns: patterns, since: since))
  }

  /// Of several endpoints for one pattern the one that was probed longest ago counts.
  mutating func note(probed: Int64?, _ patterns: [HostPattern]) {
    endpoints += 1
    for pattern in patterns {
      if let known = probes[pattern] {
        probes[pattern] = .some(known.flatMap { known in probed.map { min($0, known) } })
      } else {
        probes[pattern] = .some(probed)
      }
    }
  }

  /// Where a key stands for a host.
  func place(of pin: SPKIPin, for host: HostName) -> KeyPlace {
    if denied.contains(pin) { return .denied }
    guard let all = holders[pin] else { return .nowhere }
    let own = all.filter { $0.patterns.contains { $0.matches(host) } }
    if let since = own.compactMap(\.since).min() { return .listed(since: since) }
    return own.isEmpty ? .elsewhere : .waiting
  }

  /// Whether probes saw an issuer of this name, cleaned as those of reports are.
  func knows(issuer: String) -> Bool { issuers.contains(issuer) }

  /// When the endpoints of a host were last probed with success; `nil` if one was not, or there is none.
  func probed(_ host: HostName) -> Int64? {
    let times: [Int64?] = HostPattern.all(matching: host).compactMap { probes[$0] }
    let probed = times.compactMap(\.self)
    return probed.count == times.count ? probed.min() : nil
  }
}

extension HostPattern {
  /// Every pattern that matches a host.
  fileprivate static func all(matching host: HostName) -> [HostPattern] {
    guard case .name(let name) = host else { return [.exact(host)] }
    var patterns: [HostPattern] = [.exact(host), .anyDepth(name)]
    var ancestor = name.parent
    if let ancestor { patterns.append(.oneMoreLabel(ancestor)) }
    while let current = ancestor {
      patterns.append(.anyDepth(current))
      ancestor = current.parent
    }
    return patterns
  }
}

/// Gathers what is known of keys, every few seconds at most: reports come as often as strangers like.
final class KnownKeys: Sendable {
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let ticks: @Sendable () -> Int64
  private let newest = Locked<(made: Int64, knowledge: Task<KeyKnowledge, Never>)?>(nil)

  /// How long what was gathered is good, in milliseconds.
  static let freshness: Int64 = 5000

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.coordinators, self.ticks) = (coordinators, ticks)
  }

  /// What is known now, or was a few seconds ago.
  func knowledge() async -> KeyKnowledge {
    let now = ticks()
    let task = newest.withLock { newest in
      if let newest, now - newest.made < Self.freshness { return newest.knowledge }
      let task = Task { await gathered() }
      newest = (now, task)
      return task
    }
    return await task.value
  }

  private func gathered() async -> KeyKnowledge {
    var knowledge = KeyKnowledge()
    for coordinator in coordinators() { knowledge.add(await coordinator.snapshot) }
    return knowledge
  }
}
