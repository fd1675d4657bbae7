import HTTPServing
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Who is connected to a vantage point, and who has to go. Pure, but for the sockets that it names.
///
/// - Strangers, who have not proved themselves yet, never take the place of a client: they have places of their own. If
///   those are taken, the oldest stranger of the ``Caller`` with the most of them gives way to the next one, and addresses
///   that a client came from last, where all addresses of one key count as one: a registry begins hundreds of probes at once.
/// - A caller may begin so many handshakes a second, which is what they cost. One that a client proved itself from is
///   not limited for an hour.
/// - A client gets a tunnel while it has fewer than are free. Alone it gets half of them, and however many it holds, another
///   key finds room: whoever stole the key of one registry does not silence this point for the others.
struct VantageCrowd {
  struct Guest {
    enum State: Equatable {
      /// It has proved nothing; but a client may have come from its address before.
      case waiting(of: SPKIPin?)
      case leaving
      /// It proved to have this key, and has a tunnel.
      case client(SPKIPin)
    }

    let caller: Caller
    let socket: Socket
    var state: State

    /// Who it counts as while it waits: whoever stole a client's key has many addresses.
    func crowd(of owner: SPKIPin) -> Caller { Caller(owner.base64) }

    var client: SPKIPin? { if case .client(let client) = state { client } else { nil } }
  }

  private static let memory: Int64 = 3_600_000
  private static let mostKnown = 256
  /// Of one key: whoever stole it has as many addresses as he likes.
  private static let mostOfOne = 64

  private let tunnels: Int
  private let strangers: Int
  private(set) var guests: [Int: Guest] = [:]
  /// Those that wait: from addresses that no client came from, and from one, where the client is the caller.
  private var (unknown, known) = (CallerCrowds(), CallerCrowds())
  private var handshakes = RateLimiter(burst: 300, interval: 100)
  /// Whose an address is, and until when it counts as a client's, in milliseconds.
  private var owners: [Caller: (client: SPKIPin, end: Int64)] = [:]

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
    let caller = Caller(address)
    let owner = owners[caller].flatMap { $0.end >= now ? $0.client : nil }
    guard owner != nil || handshakes.ask(caller, at: now) == .allowed else { return false }
    // Those that were sent away are still here until their threads have ended.
    guard guests.count < tunnels + 2 * strangers else { return false }
    if unknown.count + known.count >= strangers {
      guard let oldest = unknown.oldestOfMost ?? (owner == nil ? nil : known.oldestOfMost) else {
        return false
      }
      guests[oldest]?.socket.shutdown()
      change(oldest, to: .leaving)
    }
    guests[number] = Guest(caller: caller, socket: socket, state: .leaving)
    change(number, to: .waiting(of: owner))
    return true
  }

  /// Every change of a guest's state: the crowds follow.
  private mutating func change(_ number: Int, to state: Guest.State) {
    guard let guest = guests[number] else { return }
    switch guest.state {
    case .waiting(nil): unknown.remove(number, of: guest.caller)
    case .waiting(let owner?): known.remove(number, of: guest.crowd(of: owner))
    case .leaving, .client: break
    }
    switch state {
    case .waiting(nil): unknown.add(number, of: guest.caller)
    case .waiting(let owner?): known.add(number, of: guest.crowd(of: owner))
    case .leaving, .client: break
    }
    guests[number]?.state = state
  }

  /// Notes that a connection is a client's.
  ///
  /// - Returns: false if this client has no place left.
  mutating func prove(_ number: Int, as client: SPKIPin, at now: Int64) -> Bool {
    guard let guest = guests[number] else { return false }
    remember(guest.caller, of: client, at: now)
    let taken = guests.values.compactMap(\.client)
    guard taken.count(where: { $0 == client }) < tunnels - taken.count else { return false }
    change(number, to: .client(client))
    return true
  }

  /// An address that is known stays so. Else the oldest of the same key gives way, and nobody else's.
  private mutating func remember(_ caller: Caller, of client: SPKIPin, at now: Int64) {
    owners = owners.filter { $0.value.end >= now }
    let own = owners.filter { $0.value.client == client }
    if owners[caller] == nil, own.count >= Self.mostOfOne || owners.count >= Self.mostKnown {
      guard let oldest = own.min(by: { $0.value.end < $1.value.end }) else { return }
      owners[oldest.key] = nil
    }
    owners[caller] = (client, now + Self.memory)
    // What began beside the first handshake of a client is its own, too.
    for number in unknown.numbers(of: caller) { change(number, to: .waiting(of: client)) }
  }

  mutating func leave(_ number: Int) {
    change(number, to: .leaving)
    guests[number] = nil
  }

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
