import SslPinningPlatform
import SslPinningRules

/// The keys of all endpoints: those that are published and those that probes have shown. Gathered every few
/// seconds at most, since reports come as often as strangers like.
final class KnownKeys: Sendable {
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let ticks: @Sendable () -> Int64
  private let newest = Locked<(made: Int64, keys: Task<[SPKIPin: [HostPattern]], Never>)?>(nil)

  /// How long what was gathered is good, in milliseconds.
  static let freshness: Int64 = 5000

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.coordinators, self.ticks) = (coordinators, ticks)
  }

  /// Whether a key is an endpoint's whose patterns match the host.
  func has(_ pin: SPKIPin, of host: HostName) async -> Bool {
    let now = ticks()
    let keys = newest.withLock { newest in
      if let newest, now - newest.made < Self.freshness { return newest.keys }
      let keys = Task { await gathered() }
      newest = (now, keys)
      return keys
    }
    return await keys.value[pin]?.contains { $0.matches(host) } ?? false
  }

  private func gathered() async -> [SPKIPin: [HostPattern]] {
    var found: [SPKIPin: [HostPattern]] = [:]
    for coordinator in coordinators() {
      let snapshot = await coordinator.snapshot
      for endpoint in snapshot.endpoints {
        guard let endpointKeys = snapshot.state.keysByEndpoint[endpoint.id] else { continue }
        for pin in endpointKeys.keys.map(\.pin) + Array(endpointKeys.candidates.keys) {
          found[pin, default: []] += endpoint.patterns
        }
      }
    }
    return found
  }
}
