/// Who calls, as every limit takes it: an IPv4 address, or a /64 of IPv6 with the /56 and the /48 around it.
///
/// - One line of IPv6 is a /56 or a /48: 256 or 65 536 networks of a /64, and it may call from all of them. So
///   those around a /64 count too: all callers of a /56 together may have twice what one may have, and all of a
///   /48 four times.
/// - Not more: a household with a /56 has one IPv4 address, and a company with a /48, or a carrier's handsets in
///   it, share a few of those. Not less: a carrier may give each handset a /64.
/// - An IPv4 address that IPv6 carries is the IPv4 one. What is no address counts as it is written.
///
/// Only this file sees the networks, so no limit can leave one out.
package struct Caller: Hashable, Sendable {
  fileprivate struct Network: Hashable, Sendable {
    let bytes: [UInt8]
    /// How many times the allowance of one caller it has.
    let factor: Int

    /// A count in allowances of one caller: rounded up, so it exceeds a limit if and only if the network does.
    func share(of count: Int) -> Int { (count + factor - 1) / factor }
  }

  /// The narrowest first; never empty.
  fileprivate let networks: [Network]

  private static let ipv6: [(bytes: Int, factor: Int)] = [(8, 1), (7, 2), (6, 4)]

  package init(_ text: String) {
    let address = ClientAddress.bytes(text)
    let bytes = address ?? Array(text.utf8)
    networks = (address?.count == 16 ? Self.ipv6 : [(bytes.count, 1)]).map {
      Network(bytes: Array(bytes.prefix($0.bytes)), factor: $0.factor)
    }
  }
}

/// How many each caller has of what there is only so much of.
struct CallerCounts: Sendable {
  private var counts: [Caller.Network: Int] = [:]
  private(set) var total = 0

  /// Whether a caller may have one more.
  ///
  /// - Parameters:
  ///   - most: how many one caller may have.
  ///   - other: what counts as well.
  func hasRoom(for caller: Caller, most: Int, with other: CallerCounts = CallerCounts()) -> Bool {
    caller.networks.allSatisfy {
      (counts[$0, default: 0] + other.counts[$0, default: 0]) / $0.factor < most
    }
  }

  /// How many a caller has, or its part of what a network around it has, if that is more.
  func share(of caller: Caller) -> Int {
    caller.networks.map { $0.share(of: counts[$0, default: 0]) }.max() ?? 0
  }

  mutating func add(_ caller: Caller) {
    for network in caller.networks { counts[network, default: 0] += 1 }
    total += 1
  }

  /// - Returns: false if the caller has none.
  @discardableResult mutating func remove(_ caller: Caller) -> Bool {
    guard counts[caller.networks[0]] != nil else { return false }
    for network in caller.networks {
      let rest = counts[network, default: 1] - 1
      counts[network] = rest > 0 ? rest : nil
    }
    total -= 1
    return true
  }
}

/// Those that wait, by caller, and who has most of them. No step looks at all of them: somebody who floods a
/// server decides how often one is taken.
package struct CallerCrowds: Sendable {
  /// Of each network, in the order in which they were added.
  private var waiting: [Caller.Network: [Int]] = [:]
  /// The networks with each ``Caller/Network/share(of:)``; the last ones have most.
  private var shares: [Set<Caller.Network>] = []
  package private(set) var count = 0

  package init() {}

  /// The one that came first of whoever has most.
  package var oldestOfMost: Int? { shares.last?.first.flatMap { waiting[$0]?.first } }

  /// All of a caller.
  package func numbers(of caller: Caller) -> [Int] { waiting[caller.networks[0]] ?? [] }

  package mutating func add(_ number: Int, of caller: Caller) {
    count += 1
    for network in caller.networks { change(network) { $0.append(number) } }
  }

  /// Takes one out that was added as this caller's.
  package mutating func remove(_ number: Int, of caller: Caller) {
    count -= 1
    for network in caller.networks {
      change(network) { numbers in
        if let place = numbers.firstIndex(of: number) { numbers.remove(at: place) }
      }
    }
  }

  private mutating func change(_ network: Caller.Network, _ change: (inout [Int]) -> Void) {
    var numbers = waiting.removeValue(forKey: network) ?? []
    let before = network.share(of: numbers.count)
    change(&numbers)
    let after = network.share(of: numbers.count)
    if !numbers.isEmpty { waiting[network] = numbers }
    guard before != after else { return }
    if before > 0 { shares[before].remove(network) }
    while shares.count <= after { shares.append([]) }
    if after > 0 { shares[after].insert(network) }
    while shares.last?.isEmpty == true { shares.removeLast() }
  }
}

/// Limits how often each caller may do something: a token bucket per ``Caller``, or whatever names one.
///
/// - A value without a clock: the time comes with each question, in milliseconds of any clock that
///   only goes forward. A clock that goes back gives nobody a token.
/// - Bounded: where the table is full of addresses that are being limited, new ones share a single
///   bucket. So whoever has many addresses cannot push anybody's bucket out and start afresh.
package struct RateLimiter: Sendable {
  package enum Verdict: Sendable, Equatable {
    case allowed
    /// There is a token again after so many milliseconds.
    case limited(retryAfter: Int64)
  }

  private let burst: Int64
  private let interval: Int64
  private let capacity: Int
  /// When each network's bucket is full again. One that is full says nothing and is forgotten.
  private var full: [Caller.Network: Int64] = [:]
  private var shared: Int64 = .min
  private var swept: Int64 = .min

  /// - Parameters:
  ///   - burst: how often at once, 1 at least.
  ///   - interval: milliseconds in which one token comes back, 1 at least.
  ///   - capacity: how many networks are told apart.
  package init(burst: Int, interval: Int64, capacity: Int = 10_000) {
    self.burst = Int64(max(burst, 1))
    self.interval = max(interval, 1)
    self.capacity = max(capacity, 1)
  }

  /// Takes a token of this address, or of whatever has this name, where it has one.
  package mutating func ask(_ address: String, at now: Int64) -> Verdict {
    ask(Caller(address), at: now)
  }

  /// Takes a token of each network of a caller, if each has one: a refusal costs none of them anything.
  package mutating func ask(_ caller: Caller, at now: Int64) -> Verdict {
    if !hasRoom(for: caller) { sweep(at: now) }
    let isShared = !hasRoom(for: caller)
    let asked = caller.networks.map { network -> (network: Caller.Network, after: Int64) in
      // A wider network's tokens come back faster, and so more of them fit into the same time.
      let token = max(1, interval / Int64(network.factor))
      return (network, after: max(full[network] ?? (isShared ? shared : .min), now) + token)
    }
    let excess = asked.map { $0.after - now - burst * interval }.max() ?? 0
    guard excess <= 0 else { return .limited(retryAfter: excess) }
    for (network, after) in asked {
      if isShared, full[network] == nil {
        shared = max(shared, after)
      } else {
        full[network] = after
      }
    }
    return .allowed
  }

  /// How many networks are remembered.
  var count: Int { full.count }

  private func hasRoom(for caller: Caller) -> Bool {
    full.count + caller.networks.count { full[$0] == nil } <= capacity
  }

  /// Forgets full buckets; once an interval at most, since it looks at all of them.
  private mutating func sweep(at now: Int64) {
    guard swept == .min || now >= swept + interval else { return }
    swept = now
    full = full.filter { $0.value > now }
  }
}
