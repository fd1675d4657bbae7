import Testing

@testable import HTTPServing
@testable import RegistryServer

/// 256 addresses that lie in one network, or in as many of them.
enum ManyCallers: String, CaseIterable, Sendable {
  case oneIPv6Net64 = "2001:db8::#"
  case oneIPv6Net56 = "2001:db8:0:#::1"
  case oneIPv6Net48 = "2001:db8:0:#00::1"
  case manyIPv6Net48 = "2001:db8:#::1"
  case ipv4 = "192.0.#d.1"
  /// IPv4 addresses that IPv6 carries.
  case mapped = "::ffff:192.0.#d.1"

  var addresses: [String] {
    (0..<256).map {
      rawValue.replacing("#d", with: "\($0)").replacing("#", with: String($0, radix: 16))
    }
  }

  /// How many allowances of one caller they have together; `nil` if each has its own.
  var allowances: Int? {
    switch self {
    case .oneIPv6Net64: 1
    case .oneIPv6Net56: 2
    case .oneIPv6Net48: 4
    case .manyIPv6Net48, .ipv4, .mapped: nil
    }
  }
}

@Suite("A line of IPv6 has a few allowances, and not as many as addresses")
struct CallerLimitsTests {
  @Test(
    "one caller is a /64 of IPv6 or an address of IPv4, in whatever clothes",
    arguments: [
      ("2001:db8::1", "2001:db8::ffff:0:0:2", true), ("2001:db8::1", "2001:db8:0:1::1", false),
      ("192.0.2.1", "::ffff:192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
      ("a name", "a name", true), ("a name", "another", false),
    ])
  func caller(_ one: String, _ other: String, _ isSame: Bool) {
    #expect((Caller(one) == Caller(other)) == isSame)
  }

  @Test(
    "a /56 takes twice as often as one caller, and a /48 four times",
    arguments: ManyCallers.allCases)
  func rate(_ callers: ManyCallers) {
    var limiter = RateLimiter(burst: 5, interval: 1000)
    func allowed(at now: Int64) -> Int {
      (0..<6).reduce(0) { sum, _ in
        sum + callers.addresses.count { limiter.ask($0, at: now) == .allowed }
      }
    }
    let each = callers.allowances ?? 256
    #expect(allowed(at: 0) == 5 * each)
    // Nor do their tokens come back faster.
    #expect(allowed(at: 1000) == each)
    #expect(limiter.ask("2001:db8:ffff::1", at: 1000) == .allowed)
  }

  @Test("a refusal names the time until each network has a token, and costs none of them one")
  func refusal() {
    var limiter = RateLimiter(burst: 1, interval: 1000)
    #expect(limiter.ask("2001:db8:0:1::1", at: 0) == .allowed)
    #expect(limiter.ask("2001:db8:0:1::1", at: 0) == .limited(retryAfter: 1000))
    #expect(limiter.ask("2001:db8:0:2::1", at: 0) == .allowed)
    #expect(limiter.ask("2001:db8:0:3::1", at: 0) == .limited(retryAfter: 500))
    #expect(limiter.ask("2001:db8:0:101::1", at: 0) == .allowed)
    #expect(limiter.ask("2001:db8:0:101::1", at: 0) == .limited(retryAfter: 1000))
    #expect(limiter.ask("2001:db8:0:201::1", at: 0) == .allowed)
    #expect(limiter.ask("2001:db8:0:301::1", at: 0) == .limited(retryAfter: 250))
    #expect(limiter.ask("2001:db8:0:301::1", at: 250) == .allowed)
  }

  @Test("one line fills no table that others need")
  func table() {
    var limiter = RateLimiter(burst: 1, interval: 1000, capacity: 20)
    for address in ManyCallers.oneIPv6Net48.addresses { _ = limiter.ask(address, at: 0) }
    // Four of a /64, in a /56 each, and the /48.
    #expect(limiter.count == 9)
    for address in ["192.0.2.1", "192.0.2.2"] {
      #expect(limiter.ask(address, at: 0) == .allowed)
    }
  }

  @Test(
    "a /56 holds twice as many connections as one caller, and a /48 four times, in a crowd as well",
    arguments: ManyCallers.allCases, [false, true])
  func connections(_ callers: ManyCallers, _ inACrowd: Bool) {
    let limits = HTTPLimits()
    let deadlines = ConnectionDeadlines(limits: limits)
    if inACrowd {
      for number in 0..<limits.crowd {
        let isIn = deadlines.reserve(Caller("198.51.\(number / 200).\(number % 200)"))
        #expect(isIn)
      }
    }
    let held = (0..<3).reduce(0) { sum, _ in
      sum + callers.addresses.count { deadlines.reserve(Caller($0)) }
    }
    let one = inACrowd ? limits.connectionsPerAddressInACrowd : limits.connectionsPerAddress
    // Each of 256 asks three times.
    #expect(held == callers.allowances.map { $0 * one } ?? 768)
    #expect(deadlines.reserve(Caller("2001:db8:ffff::1")))
    #expect(deadlines.reserve(Caller("203.0.113.1")))
  }

  @Test("of a /48 that has used up one of its /56, another /56 still has its own")
  func beside() {
    let deadlines = ConnectionDeadlines(limits: HTTPLimits())
    let first = ManyCallers.oneIPv6Net56.addresses.map(Caller.init)
    #expect((first + first).count { deadlines.reserve($0) } == 256)
    #expect((0..<200).count { _ in deadlines.reserve(Caller("2001:db8:0:100::1")) } == 128)
    // One that ends makes room again.
    deadlines.giveUp(first[0])
    #expect(deadlines.reserve(first[9]) && !deadlines.reserve(first[9]))
  }

  @Test("whoever takes many addresses of a line has more than a share of the connections")
  func share() {
    var counts = CallerCounts()
    let line = ManyCallers.oneIPv6Net56.addresses.map(Caller.init)
    for caller in line { counts.add(caller) }
    for _ in 0..<31 { counts.add(Caller("192.0.2.1")) }
    #expect(counts.share(of: line[7]) == 128)
    #expect(counts.share(of: Caller("192.0.2.1")) == 31)
    // Rounded up: beyond a share is who has more than it may.
    for caller in line.prefix(256 - 65) { counts.remove(caller) }
    #expect(counts.share(of: line[255]) == 33)
    for caller in line.suffix(65) { counts.remove(caller) }
    #expect(counts.share(of: line[255]) == 0 && counts.total == 31)
    let isThere = counts.remove(line[255])
    #expect(!isThere && counts.total == 31)
  }

  @Test("of those that wait the first one of the fullest network goes, whatever its width")
  func crowds() {
    var crowds = CallerCrowds()
    #expect(crowds.oldestOfMost == nil)
    let (one, line) = (Caller("192.0.2.1"), ManyCallers.oneIPv6Net56.addresses.map(Caller.init))
    for number in 0..<10 { crowds.add(number, of: one) }
    for (number, caller) in line.enumerated() { crowds.add(100 + number, of: caller) }
    #expect(crowds.count == 266 && crowds.oldestOfMost == 100)
    #expect(crowds.numbers(of: one) == Array(0..<10) && crowds.numbers(of: line[3]) == [103])
    // 20 of a /56 are as many as 10 of one caller; with 18 it has fewer.
    for number in 0..<238 { crowds.remove(100 + number, of: line[number]) }
    #expect(crowds.count == 28 && crowds.oldestOfMost == 0)
    crowds.remove(0, of: one)
    for number in 1..<3 { crowds.remove(number, of: one) }
    #expect(crowds.oldestOfMost == 338)
    for number in 3..<10 { crowds.remove(number, of: one) }
    for number in 238..<256 { crowds.remove(100 + number, of: line[number]) }
    #expect(crowds.count == 0 && crowds.oldestOfMost == nil)
  }
}
