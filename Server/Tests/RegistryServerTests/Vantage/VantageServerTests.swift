import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer
@testable import TLSTools

@Suite(
  "A vantage point opens tunnels for its clients, and for nobody else", .timeLimit(.minutes(3)))
struct VantageServerTests {
  @Test("a registry sees an enrolled endpoint through it, at an address of the lookup made for it")
  func seen() async throws {
    let bench = try VantageBench()
    for _ in 0..<5 { #expect(try await bench.sees(bench.probe())) }
    #expect(bench.lookups.withLock { $0 } == Array(repeating: VantageBench.host, count: 5))
  }

  @Test("what is enrolled later is asked for, and what no longer is, is not")
  func changed() async throws {
    let bench = try VantageBench(enrolled: ["other.test:443"])
    let refused = try await bench.probe()
    // The point is well: only this endpoint cannot be seen from there.
    #expect(refused.outcome == .failure(.proxy(.refused(status: 403))))
    #expect(refused.blame == .server)
    let target = try #require(VantageTarget(bench.target))
    bench.server.change(
      VantageRules(targets: [target], networks: [try AddressNetwork("127.0.0.0/8")]))
    #expect(try await bench.sees(bench.probe()))
  }

  @Test("what is not enrolled is neither looked up nor dialled")
  func notEnrolled() async throws {
    let bench = try VantageBench()
    let port = bench.site.port
    for target in [
      "other.test:\(port)", "www.site.test:\(port)", "site.test.:1", "site.test:\(port &+ 1)",
      "127.0.0.1:\(port)", "[::1]:\(port)", "[::ffff:127.0.0.1]:\(port)", "localhost:\(port)",
      "169.254.169.254:80",
    ] {
      #expect(try await bench.status(of: VantageBench.request(target)) == 403, "\(target)")
    }
    #expect(bench.lookups.withLock { $0 }.isEmpty)
    #expect(bench.site.counts.connections == 0)
  }

  @Test(
    "a name that leads into a private network is not dialled, nor one that comes to lead there",
    arguments: [
      [Endpoint(address: "127.0.0.1", port: 0)], [Endpoint(address: "10.0.0.1", port: 0)],
      [Endpoint(address: "::1", port: 0)], [Endpoint(address: "::ffff:127.0.0.1", port: 0)],
      [
        Endpoint(address: "64:ff9b::7f00:1", port: 0),
        Endpoint(address: "169.254.169.254", port: 0),
      ],
    ])
  func rebinding(_ addresses: [Endpoint]) async throws {
    let bench = try VantageBench(networks: [])
    bench.lead(
      to: addresses.map { Endpoint(address: $0.address, port: bench.site.port) })
    #expect(try await bench.status(of: VantageBench.request(bench.target)) == 502)
    #expect(bench.lookups.withLock(\.count) == 1)
    #expect(bench.site.counts.connections == 0)
  }

  @Test("of several addresses those that are not permitted are passed over")
  func mixed() async throws {
    let bench = try VantageBench()
    bench.lead(
      to: [Endpoint(address: "10.0.0.1", port: bench.site.port), .loopback(bench.site.port)])
    #expect(try await bench.sees(bench.probe()))
  }

  @Test(
    "of several addresses each is dialled in time, whatever the order of the resolver: a point sees all servers"
  )
  func order() async throws {
    let bench = try VantageBench()
    let other = try LocalTLSServer(identity: bench.site.identity) { _ in .text("never asked") }
    bench.lead(to: [.loopback(bench.site.port), .loopback(other.port)])
    for _ in 0..<40 where bench.site.counts.connections == 0 || other.counts.connections == 0 {
      #expect(try await bench.sees(bench.probe()))
    }
    #expect(bench.site.counts.connections > 0 && other.counts.connections > 0)
  }

  @Test(
    "an address that is asked for is dialled, and no other one instead, if the name has it here")
  func askedAddress() async throws {
    let bench = try VantageBench()
    // Nobody listens at the second one.
    bench.lead(to: [
      .loopback(bench.site.port), Endpoint(address: "127.0.0.9", port: bench.site.port),
    ])
    // Also for who asks from behind DNS64.
    for (address, status) in [
      ("127.0.0.1", 200), ("127.0.0.9", 502), ("127.0.0.77", 200), ("64:ff9b::7f00:1", 200),
      ("64:ff9b::7f00:9", 502),
    ] {
      for _ in 0..<4 {
        let request = VantageBench.request(bench.target, at: address)
        #expect(try await bench.status(of: request) == status, "\(address)")
      }
    }
    // The name must lead there: nobody gets anywhere else by asking for it.
    bench.lead(to: [Endpoint(address: "127.0.0.9", port: bench.site.port)])
    #expect(try await bench.status(of: VantageBench.request(bench.target, at: "127.0.0.1")) == 502)
  }

  @Test("an enrolled address is dialled as it is, if its network is named")
  func literal() async throws {
    let closed = try VantageBench(networks: [], enrolled: ["127.0.0.1:1"])
    #expect(try await closed.status(of: VantageBench.request("127.0.0.1:1")) == 502)
    #expect(closed.lookups.withLock { $0 }.isEmpty)
  }

  @Test("a client without a key, or with another, gets no word: not even that a host is unknown")
  func noProof() async throws {
    let bench = try VantageBench()
    let strange = try ServerIdentity.selfSigned(names: ["client"])
    for identity in [nil, strange] {
      let connection = try await bench.connect(as: identity)
      let status = try await offTheCooperativePool {
        connection.status(of: VantageBench.request(bench.target))
      }
      #expect(status == nil)
    }
    #expect(bench.lookups.withLock { $0 }.isEmpty)
    // The client's certificate under another key is no proof either: OpenSSL would not even load it, so the chain is
    // the client's and the leaf is not.
    let chained = ServerIdentity(
      leaf: strange.leaf, intermediates: [bench.client.leaf], key: strange.key)
    let connection = try await bench.connect(as: chained)
    #expect(
      try await offTheCooperativePool {
        connection.status(of: VantageBench.request(bench.target))
      } == nil)
    #expect(try await bench.sees(bench.probe()))
  }

  @Test("bytes before the proof are no request")
  func clearText() async throws {
    let bench = try VantageBench()
    for bytes in [
      Array(VantageBench.request(bench.target).utf8), [0x16, 3, 3, 0, 4, 0, 0, 0, 0],
      [UInt8](repeating: 0, count: 4096),
    ] {
      let connection = try RawConnection(bench.server.address)
      connection.send(bytes)
      let answer = try #require(try await connection.readToEnd())
      #expect(!answer.contains("HTTP"))
    }
    #expect(bench.lookups.withLock { $0 }.isEmpty)
    #expect(try await bench.sees(bench.probe()))
  }

  @Test("what follows a request goes nowhere, and no second request is read")
  func smuggling() async throws {
    let bench = try VantageBench()
    let request = VantageBench.request(bench.target)
    for bytes in [
      request + request, request + "GET / HTTP/1.1\r\n\r\n", request + "\u{16}\u{3}\u{1}",
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + request,
      "CONNECT \(bench.target) HTTP/1.1\r\nHost: \(bench.target)\r\nContent-Length: 9\r\n\r\n",
    ] {
      let status = try await bench.status(of: bytes)
      #expect(status == 400 || status == 405, "\(bytes)")
    }
    #expect(bench.site.counts.connections == 0)
  }
}

@Suite(
  "A vantage point outlives whoever wants to keep it from its clients", .timeLimit(.minutes(3)))
struct VantageFloodTests {
  @Test("connections that say nothing, and half a handshake, end by themselves")
  func halfOpen() async throws {
    let bench = try VantageBench { $0.patience = 3000 }
    let silent = try RawConnection(bench.server.address)
    let half = try RawConnection(bench.server.address)
    half.send([0x16, 3, 1, 2, 0, 1])
    // As if a hello of 16 MB were on its way.
    let endless = try RawConnection(bench.server.address)
    endless.send([0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff] + [UInt8](repeating: 7, count: 16_380))
    for connection in [silent, half, endless] {
      #expect(try await connection.readToEnd() != nil)
    }
    let mute = try await bench.connect(as: bench.client)
    #expect(try await offTheCooperativePool { mute.status() } == 400)
    #expect(try await bench.sees(bench.probe()))
  }

  @Test("a request that drips, and one without end, end as well")
  func headers() async throws {
    let bench = try VantageBench { $0.patience = 3000 }
    let dripping = try await bench.connect(as: bench.client)
    let (isCut, status) = try await offTheCooperativePool {
      var isCut = false
      // Each byte would renew a time-out for silence.
      for byte in Array(
        "CONNECT \(bench.target) HTTP/1.1\r\nX: \(String(repeating: "x", count: 70))".utf8)
      {
        guard (try? dripping.send([byte])) != nil else {
          isCut = true
          break
        }
        usleep(40_000)  // why: the peer's patience is real time
      }
      return (isCut, dripping.status())
    }
    #expect(isCut)
    #expect(status == nil || status == 400)
    let flood = "CONNECT \(bench.target) HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 9000)
    // On a busy machine the patience of the other one would be over first.
    let patient = try VantageBench()
    let answer = try await patient.status(of: flood)
    #expect(answer == nil || answer == 431)
    #expect((bench.lookups.withLock { $0 } + patient.lookups.withLock { $0 }).isEmpty)
    #expect(try await bench.sees(bench.probe()))
  }

  @Test("strangers keep no client out, however many connections they hold")
  func crowd() async throws {
    let bench = try VantageBench { ($0.strangers, $0.patience) = (8, 20_000) }
    let idle = try (0..<40).map { _ in try RawConnection(bench.server.address) }
    for _ in 0..<3 { #expect(try await bench.sees(bench.probe())) }
    withExtendedLifetime(idle) {}
  }

  @Test(
    "the log has so many strangers of one address, and of all addresses together, and counts the others"
  )
  func strangerLines() {
    var lines = StrangerLines()
    let ofOne = (0..<50).compactMap { _ in lines.take("192.0.2.1", at: 0) }
    #expect(ofOne == Array(repeating: 0, count: 20))
    #expect(lines.take("192.0.2.2", at: 0) == 30)
    let ofMany = (0..<30_000).compactMap { lines.take("10.0.\($0 / 256).\($0 % 256)", at: 0) }
    #expect(ofMany == Array(repeating: 0, count: 79))
    #expect(lines.take("192.0.2.3", at: 2999) == nil)
    #expect(lines.take("192.0.2.3", at: 3000) == 29_922)
    #expect(lines.take("192.0.2.3", at: 6000) == 0)
  }

  @Test("connections that get no thread are closed, and take no place for ever")
  func noThreads() async throws {
    let (threads, others) = (WorkerThreads(atMost: 5), DispatchSemaphore(value: 0))
    let bench = try VantageBench(threads: threads) {
      ($0.tunnels, $0.strangers, $0.patience) = (2, 8, 20_000)
    }
    // All threads are somebody else's: none of these connections frees a place by ending.
    for _ in 0..<4 { #expect(threads.start("another") { others.wait() }) }
    let idle = try (0..<40).map { _ in try RawConnection(bench.server.address) }
    // Behind all of them.
    #expect(try await !bench.sees(bench.probe()))
    for _ in 0..<4 { others.signal() }
    var isSeen = false
    for _ in 0..<50 where !isSeen { isSeen = try await bench.sees(bench.probe()) }
    #expect(isSeen)
    withExtendedLifetime(idle) {}
  }

  @Test("a client gets a tunnel while it has fewer than are free: another key always finds one")
  func shares() {
    var (crowd, last) = (VantageCrowd(tunnels: 4, strangers: 8), 0)
    /// How many of ten connections get a tunnel.
    func take(_ client: SPKIPin) -> Int {
      (0..<10).filter { _ in
        last += 1
        let isIn = crowd.enter(last, Socket(owning: -1), from: "192.0.2.1", at: 0)
        if isIn, crowd.prove(last, as: client, at: 0) { return true }
        crowd.leave(last)
        return false
      }.count
    }
    #expect(take(pin(1)) == 4)
    #expect(take(pin(1)) == 0)
    #expect(take(pin(2)) == 2)
    #expect(take(pin(3)) == 1)
    // One tunnel of the first client ends: it is not for whoever had the most.
    crowd.leave(1)
    #expect(take(pin(1)) == 0)
    #expect(take(pin(2)) == 0)
    #expect(take(pin(3)) == 1)
  }

  @Test("a key's many addresses take no other client's place among those that are known")
  func knownAddresses() {
    var (crowd, last) = (VantageCrowd(tunnels: 1000, strangers: 8), 0)
    func prove(_ client: SPKIPin, _ address: String, at now: Int64) {
      last += 1
      _ = crowd.enter(last, Socket(owning: -1), from: address, at: now)
      _ = crowd.prove(last, as: client, at: now)
      crowd.leave(last)
    }
    /// Whether an address has more handshakes than a stranger's.
    func isKnown(_ address: String, at now: Int64) -> Bool {
      var crowd = crowd
      return (0..<400).allSatisfy {
        crowd.enter(10_000 + $0, Socket(owning: -1), from: address, at: now)
      }
    }
    prove(pin(2), "192.0.2.1", at: 0)
    for number in 0..<300 {
      prove(pin(1), "203.0.\(113 + number / 200).\(number % 200)", at: Int64(number) * 1000)
    }
    #expect(isKnown("192.0.2.1", at: 300_000) && !isKnown("192.0.2.9", at: 300_000))
    // The oldest of the same key gave way.
    #expect(!isKnown("203.0.113.0", at: 300_000) && isKnown("203.0.114.99", at: 300_000))
    // And there is room for another client's first one.
    prove(pin(3), "192.0.2.7", at: 300_000)
    #expect(isKnown("192.0.2.7", at: 301_000))
    // Within the hour it is renewed.
    prove(pin(2), "192.0.2.1", at: 3_000_000)
    #expect(isKnown("192.0.2.1", at: 5_000_000))
  }

  @Test("a key's many addresses take no other client's place among those that begin a handshake")
  func handshakesOfOne() {
    var (crowd, last) = (VantageCrowd(tunnels: 1000, strangers: 8), 0)
    func enter(_ addresses: String...) {
      for address in addresses {
        last += 1
        let isIn = crowd.enter(last, Socket(owning: -1), from: address, at: 0)
        #expect(isIn)
      }
    }
    var leaving: [Int] { crowd.guests.filter { $0.value.state == .leaving }.keys.sorted() }
    let (own, stolen) = ("192.0.2.1", ["203.0.113.1", "203.0.113.2", "203.0.113.3"])
    for (address, client) in [(own, pin(2))] + stolen.map({ ($0, pin(1)) }) {
      enter(address)
      _ = crowd.prove(last, as: client, at: 0)
      crowd.leave(last)
    }
    enter(own, own, own, stolen[0], stolen[0], stolen[1], stolen[1], stolen[2])
    #expect(leaving == [])
    enter(own)
    #expect(leaving == [8])
    // A client that has most itself gives way.
    for number in 9...10 { crowd.leave(number) }
    enter(own, own, stolen[0])
    #expect(leaving == [5, 8])
  }

  @Test(
    "an address that no client came from begins so many handshakes, a /56 twice, a /48 four times as many",
    arguments: [
      (ManyCallers.oneIPv6Net64, 300), (ManyCallers.oneIPv6Net56, 600),
      (ManyCallers.oneIPv6Net48, 1200), (ManyCallers.ipv4, 1536),
    ])
  func handshakesOfALine(_ callers: ManyCallers, _ begun: Int) {
    var (crowd, last) = (VantageCrowd(tunnels: 1000, strangers: 8), 0)
    let entered = (0..<6).reduce(0) { sum, _ in
      sum
        + callers.addresses.count {
          last += 1
          return crowd.enter(last, Socket(owning: -1), from: $0, at: 0)
        }
    }
    #expect(entered == begun)
    let isIn = crowd.enter(0, Socket(owning: -1), from: "2001:db8:ffff::1", at: 0)
    #expect(isIn)
  }

  @Test("a line with an address for each connection takes no place of a caller with two")
  func placesOfALine() {
    var crowd = VantageCrowd(tunnels: 1000, strangers: 8)
    for number in 1...2 {
      let isIn = crowd.enter(number, Socket(owning: -1), from: "2001:db8:ffff::1", at: 0)
      #expect(isIn)
    }
    for (number, address) in ManyCallers.oneIPv6Net56.addresses.enumerated() {
      let isIn = crowd.enter(3 + number, Socket(owning: -1), from: address, at: 0)
      #expect(isIn)
    }
    let left = crowd.guests.filter { $0.value.state != .leaving }.keys.sorted()
    #expect(left == [1, 2] + Array(253...258))
  }

  @Test("what began beside the first handshake of a client is not a stranger's any more")
  func besideTheFirst() {
    var crowd = VantageCrowd(tunnels: 1000, strangers: 8)
    for number in 1...5 {
      let isIn = crowd.enter(number, Socket(owning: -1), from: "192.0.2.1", at: 0)
      #expect(isIn)
    }
    _ = crowd.prove(1, as: pin(1), at: 0)
    for (number, address) in ManyCallers.manyIPv6Net48.addresses.enumerated() {
      let isIn = crowd.enter(6 + number, Socket(owning: -1), from: address, at: 0)
      #expect(isIn)
    }
    #expect((1...5).allSatisfy { crowd.guests[$0]?.state != .leaving })
    #expect(crowd.guests.values.count { $0.state != .leaving } == 9)
  }

  @Test("one tunnel more than a client may have is refused as the point's fault, until one ends")
  func tunnels() async throws {
    let bench = try VantageBench { $0.tunnels = 2 }
    var open: [VantageClient] = []
    for _ in 0..<2 {
      let client = try await bench.connect(as: bench.client)
      let status = try await offTheCooperativePool {
        client.status(of: VantageBench.request(bench.target))
      }
      #expect(status == 200)
      open.append(client)
    }
    let refused = try await bench.probe()
    #expect(refused.outcome == .failure(.proxy(.refused(status: 429))))
    #expect(refused.blame == .proxy)
    // Another registry does not suffer for it.
    #expect(
      try await bench.status(of: VantageBench.request(bench.target), as: bench.otherClient) == 200)
    open = []
    var isSeen = false
    for _ in 0..<50 where !isSeen { isSeen = try await bench.sees(bench.probe()) }
    #expect(isSeen)
  }

  @Test("an endpoint is dialled so often and not more, and others are dialled meanwhile")
  func dials() async throws {
    let bench = try VantageBench(enrolled: ["site.test:1", "other.test:1"]) {
      ($0.dials, $0.dialInterval) = (3, 600_000)
    }
    bench.lead(to: [.loopback(1)])
    var statuses: [Int?] = []
    for _ in 0..<5 {
      statuses.append(try await bench.status(of: VantageBench.request("site.test:1")))
    }
    #expect(statuses == [502, 502, 502, 429, 429])
    #expect(try await bench.status(of: VantageBench.request("other.test:1")) == 502)
    // Nor does one client use up the dials of another.
    #expect(
      try await bench.status(of: VantageBench.request("site.test:1"), as: bench.otherClient) == 502)
  }

  @Test(
    "a tunnel carries a handshake, and ends before it carries much more", arguments: [true, false])
  func bounded(inBytes: Bool) async throws {
    let bench = try VantageBench {
      if inBytes { $0.bytes = 20_000 } else { $0.life = 700 }
    }
    let silent = try LocalRawServer(.silent)
    bench.lead(to: [.loopback(silent.port)])
    let client = try await bench.connect(as: bench.client)
    let isCut = try await offTheCooperativePool {
      #expect(client.status(of: VantageBench.request(bench.target)) == 200)
      if inBytes {
        for _ in 0..<4 { try? client.send([UInt8](repeating: 1, count: 8192)) }
      }
      return client.isCut()
    }
    #expect(isCut)
  }

  @Test("clients that change their keys without end are ended")
  func floods() async throws {
    let bench = try VantageBench { $0.patience = 120_000 }
    let client = try await bench.connect(as: bench.client)
    let status = try await offTheCooperativePool {
      client.updateKeys(50_000)
      return client.status(of: VantageBench.request(bench.target))
    }
    #expect(status == nil || status == 400)
    #expect(try await bench.sees(bench.probe()))
  }
}
