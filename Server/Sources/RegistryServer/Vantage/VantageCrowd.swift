import HTTPServing
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Who is connected to a vantage point, and who has to go. Pure, but for the sockets that it names.
///
/// - Strangers, who have not proved themselves yet, never take the place of a client: they have places of their own. If
///   those are taken, the oldest stranger of the address with the most of them gives way to the next one, and addresses
///   that a client came from last, where all addresses of one key count as one: a registry begins hundreds of probes at once.
/// - An address may begin so many handshakes a second, which is what they cost. One that a client proved itself from is
///   not limited for an hour.
/// - A client gets a tunnel while it has fewer than are free. Alone it gets half of them, and however many it holds, another
///   key finds room: whoever stole the key of one registry does not silence this point for the others.
struct VantageCrowd {
  struct Guest {
    let address: [UInt8]
    let socket: Socket
    /// The key that it proved to have; `nil` without a tunnel.
    var client: SPKIPin?
    var isLeaving = false
  }

  private static let memory: Int64 = 3_600_000
  private static let mostKnown = 256
  /// Of one key: whoever stole it has as many addresses as he likes.
  private static let mostOfOne = 64

  private let tunnels: Int
  private let strangers: Int
  private(set) var guests: [Int: Guest] = [:]
  private var handshakes = RateLimiter(burst: 300, interval: 100)
  /// Whose an address is, and until when it counts as a client's, in milliseconds.
  private var known: [[UInt8]: (client: SPKIPin, end: Int64)] = [:]

  /// - Parameters:
  ///   - tunnels: of one client alone; there are twice as many.
  ///   - strangers: at once.
  init(tunnels: Int, strangers: Int) {
    (self.tunnels, self.strangers) = (2 * tunnels, strangers)
  }

  /// Takes a new connection in.
  ///
  /// - Returns: false if there is no place for it.
  mutating func enter(_ number: Int, _ socket: Socket, from address: String, at now: Int64) -> Bool
  {
    let bucket = ClientAddress.bucket(address)
    if !isKnown(bucket, at: now) {
      guard handshakes.ask(address, at: now) == .allowed else { return false }
    }
    // Those that were sent away are still here until their threads have ended.
    guard guests.count < tunnels + 2 * strangers else { return false }
    let waiting = guests.filter { $0.value.client == nil && !$0.value.isLeaving }
    if waiting.count >= strangers {
      let unknown = waiting.filter { !isKnown($0.value.address, at: now) }
      guard !unknown.isEmpty || isKnown(bucket, at: now) else { return false }
      sendAway(oneOf: unknown.isEmpty ? waiting : unknown)
    }
    guests[number] = Guest(address: bucket, socket: socket)
    return true
  }

  private func isKnown(_ address: [UInt8], at now: Int64) -> Bool {
    known[address].map { $0.end >= now } ?? false
  }

  /// Those from addresses of one client are one crowd: whoever stole its key has many addresses.
  private mutating func sendAway(oneOf waiting: [Int: Guest]) {
    let crowds = Dictionary(grouping: waiting.keys) { number in
      waiting[number].map { known[$0.address]?.client.bytes ?? $0.address } ?? []
    }
    guard let oldest = crowds.values.max(by: { $0.count < $1.count })?.min() else { return }
    guests[oldest]?.isLeaving = true
    guests[oldest]?.socket.shutdown()
  }

  /// Notes that a connection is a client's.
  ///
  /// - Returns: false if this client has no place left.
  mutating func prove(_ number: Int, as client: SPKIPin, at now: Int64) -> Bool {
    guard let guest = guests[number] else { return false }
    remember(guest.address, of: client, at: now)
    let taken = guests.values.compactMap(\.client)
    guard taken.count(where: { $0 == client }) < tunnels - taken.count else { return false }
    guests[number]?.client = client
    return true
  }

  /// An address that is known stays so. Else the oldest of the same key gives way, and nobody else's.
  private mutating func remember(_ address: [UInt8], of client: SPKIPin, at now: Int64) {
    known = known.filter { $0.value.end >= now }
    let own = known.filter { $0.value.client == client }
    if known[address] == nil, own.count >= Self.mostOfOne || known.count >= Self.mostKnown {
      guard let oldest = own.min(by: { $0.value.end < $1.value.end }) else { return }
      known[oldest.key] = nil
    }
    known[address] = (client, now + Self.memory)
  }

  mutating func leave(_ number: Int) { guests[number] = nil }

  /// Ends all connections.
  func endAll() { for guest in guests.values { guest.socket.shutdown() } }
}

/// Which strangers the log tells of: so many of one address, and of all together, since whoever has a network has more
/// addresses than a disk has room.
struct StrangerLines {
  private var each = RateLimiter(burst: 20, interval: 3000)
  private var all = RateLimiter(burst: 100, interval: 3000)
  private var leftOut = 0

  /// How many were left out since the last line; `nil` if this one is left out as well.
  mutating func take(_ address: String, at now: Int64) -> Int? {
    guard each.ask(address, at: now) == .allowed, all.ask("all", at: now) == .allowed else {
      leftOut += 1
      return nil
    }
    defer { leftOut = 0 }
    return leftOut
  }
}
