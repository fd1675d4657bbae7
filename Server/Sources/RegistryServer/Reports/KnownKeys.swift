import SslPinningPlatform
import SslPinningRules

/// The keys of all endpoints: those that are published and those that looks have shown. Gathered every few
/// seconds at most, since reports come as often as strangers like.
final class KnownKeys: Sendable {
  private let keepers: @Sendable () -> [DocumentKeeper]
  private let ticks: @Sendable () -> Int64
  private let newest = Locked<(made: Int64, keys: Task<[SPKIPin: [HostPattern]], Never>)?>(nil)

  /// How long what was gathered is good, in milliseconds.
  static let freshness: Int64 = 5000

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    keepers: @escaping @Sendable () -> [DocumentKeeper],
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.keepers, self.ticks) = (keepers, ticks)
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
    for keeper in keepers() {
      let snapshot = await keeper.snapshot
      for endpoint in snapshot.endpoints {
        guard let ledger = snapshot.state.ledgers[endpoint.id] else { continue }
        for pin in ledger.keys.map(\.pin) + Array(ledger.candidates.keys) {
          found[pin, default: []] += endpoint.patterns
        }
      }
    }
    return found
  }
}
