import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("A crowd of busy connections keeps no reader out", .timeLimit(.minutes(2)))
struct HTTPCrowdTests {
  private static let ask = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"

  /// Keeps more connections busy than there are, each in use too often to count as idle, and dials again
  /// when one ends; until cancelled.
  private static func crowd(_ server: HTTPServer, _ count: Int) -> Task<Void, Never> {
    Task {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<count {
          group.addTask {
            while !Task.isCancelled, let client = try? RawConnection(server.address) {
              while !Task.isCancelled, client.send(ask),
                (try? await client.read(until: "ok")) != nil
              {
                // why: what the attack is: fewer than 250 ms between two requests.
                try? await Task.sleep(for: .milliseconds(50))
              }
            }
          }
        }
      }
    }
  }

  @Test("more connections than there are, all in use, and every reader is answered")
  func polite() async throws {
    var limits = HTTPLimits()
    limits.connections = 16
    let server = try HTTPBench.start(limits)
    let crowd = Self.crowd(server, 24)
    #expect(await eventually { server.openConnections >= 14 })
    for _ in 0..<5 {
      let reader = try RawConnection(server.address)
      reader.send(Self.ask)
      #expect(try await reader.read(until: "ok") != nil)
    }
    crowd.cancel()
    await server.stop()
    await crowd.value
  }

  @Test("from seven eighths on each answer is its connection's last, and before that none is")
  func lastAnswers() async throws {
    var limits = HTTPLimits()
    limits.connections = 16
    limits.header = .seconds(60)
    let server = try HTTPBench.start(limits)
    var clients: [RawConnection] = []
    for number in 1...14 {
      let client = try RawConnection(server.address)
      client.send(Self.ask)
      let head = try #require(try await client.read(until: "ok"))
      #expect(head.contains("Connection: close") == (number == 14), "\(number)")
      clients.append(client)
    }
    await server.stop()
  }

  @Test("in a crowd one address has a quarter of its connections, and another one finds room")
  func fewer() async throws {
    var limits = HTTPLimits()
    (limits.connections, limits.connectionsPerAddress) = (16, 16)
    (limits.idle, limits.header) = (.seconds(60), .seconds(60))
    let server = try HTTPBench.start(limits, listen: "[::]:0")
    let port = server.address.port
    let address = try #require(ListenAddress("127.0.0.1:\(port)"))
    let clients = try (0..<14).map { _ in try RawConnection(address) }
    // Not that 14 are open: a thread that begins with one of them only after the next would refuse that one.
    #expect(await eventually { server.isCrowded })
    let beyond = try RawConnection(address)
    beyond.send(Self.ask)
    #expect(try await beyond.readToEnd() == "")
    let other = try RawConnection(try #require(ListenAddress("[::1]:\(port)")))
    other.send(Self.ask)
    #expect(try await other.read(until: "ok") != nil)
    withExtendedLifetime(clients) {}
    await server.stop()
  }

  @Test(
    "a connection has less time once its caller has more than a share: milliseconds",
    arguments: [(true, false, 250), (false, false, 1000), (true, true, 50), (false, true, 50)])
  func patience(_ isIdle: Bool, _ isBeyondShare: Bool, _ milliseconds: Int64) {
    #expect(
      HeldConnection<Int>.patience(isIdle: isIdle, isBeyondShare: isBeyondShare)
        == milliseconds * 1_000_000)
  }

  /// Callers with three, two and one, where two are a share; in milliseconds, at 1000.
  private static let full: [(of: Int, isIdle: Bool, since: Int64)] = [
    (3, false, 100), (3, true, 800), (3, true, 700), (2, true, 0), (2, true, 1), (1, true, 2),
  ]
  private static let fresh = full.map { $0.of == 3 ? (3, $0.isIdle, 990) : $0 }
  /// Readers behind one address, in the middle of their handshakes, and a silent connection of each of many addresses.
  private static let carrier: [(of: Int, isIdle: Bool, since: Int64)] = [
    (2, false, 600), (2, false, 100), (1, false, 0), (1, false, -1000), (0, false, -500),
    (0, true, 740),
  ]

  @Test(
    "those of whoever has most go first, if that is more than a share, and else those of anybody; of them the idle ones, of those the oldest",
    arguments: [
      (full, 1, [2]), (full, 2, [2, 1]), (full, 6, [2, 1, 0]), (full, 0, []), (full, -1, []),
      (fresh, 6, []), (Array(full.dropFirst(3)), 6, [3, 4, 5]), ([], 1, []),
      (carrier, 6, [5, 3, 4, 2]), (carrier, 2, [5, 3]),
    ])
  func leaving(_ held: [(of: Int, isIdle: Bool, since: Int64)], _ count: Int, _ gone: [Int]) {
    let all = zip((6 - held.count)..., held).map {
      HeldConnection(
        connection: $0, of: $1.of, isIdle: $1.isIdle, since: $1.since * 1_000_000)
    }
    #expect(HeldConnection.leaving(all, count, share: 2, at: 1_000_000_000) == gone)
  }

  @Test("a connection that has asked nothing yet has a handshake's time, where others have as many")
  func handshakes() async throws {
    var limits = HTTPLimits()
    limits.connections = 16
    (limits.idle, limits.header) = (.seconds(60), .seconds(60))
    let server = try HTTPBench.start(limits, listen: "[::]:0")
    let address = try #require(ListenAddress("127.0.0.1:\(server.address.port)"))
    let began = ContinuousClock.now
    let clients = try (0..<16).map { _ in try RawConnection(address) }
    #expect(await eventually { server.openConnections == 16 })
    let reader = try RawConnection(address)
    reader.send(Self.ask)
    #expect(try await reader.read(until: "ok") != nil)
    #expect(ContinuousClock.now - began > .milliseconds(900))
    withExtendedLifetime(clients) {}
    await server.stop()
  }

  @Test("of one caller no more is handed over than it may have, whenever a thread begins with it")
  func reserved() throws {
    var limits = HTTPLimits()
    (limits.connections, limits.connectionsPerAddress) = (80, 16)
    let deadlines = ConnectionDeadlines(limits: limits)
    let (one, other) = (Caller("192.0.2.1"), Caller("192.0.2.2"))
    #expect(
      (0..<17).map { _ in deadlines.reserve(one) } == Array(repeating: true, count: 16) + [false])
    #expect(deadlines.reserve(other))
    deadlines.giveUp(one)
    #expect(deadlines.reserve(one) && !deadlines.reserve(one))
    // Those that wait count as those that are open: seven eighths are a crowd.
    let crowd = limits.crowd - 17
    #expect((0..<crowd).allSatisfy { deadlines.reserve(Caller("198.51.100.\($0)")) })
    let share = (0..<16).filter { _ in deadlines.reserve(other) }.count
    #expect(share == limits.connectionsPerAddressInACrowd - 1)
    deadlines.forgetQueue()
    #expect(deadlines.reserve(one))
  }

  @Test(
    "what the library dropped takes no place for ever, and what its threads have yet to begin with does"
  )
  func lost() {
    var queue = ConnectionQueue()
    let minute = 1...ConnectionQueue.patience
    // Threads that begin with one every now and then are busy.
    let busy = minute.map { queue.look(handedOver: 50, begun: $0 / 100) }
    #expect(!busy.contains(true) && queue.waiting(handedOver: 50, begun: 3) == 47)
    let looks = minute.map { _ in queue.look(handedOver: 50, begun: 3) }
    #expect(looks.firstIndex(of: true) == looks.count - 1)
    #expect(queue.waiting(handedOver: 50, begun: 3) == 0)
    #expect(queue.waiting(handedOver: 52, begun: 3) == 2)
    // They began after all, one after the other.
    let begun = [40, 50, 60].map { begun in
      _ = queue.look(handedOver: 60, begun: begun)
      return queue.waiting(handedOver: 70, begun: begun)
    }
    #expect(begun == [10, 10, 10])
  }

  @Test("a thread of the library that has more connections than are let in goes on")
  func beyond() async throws {
    var limits = HTTPLimits()
    limits.connections = 2
    let site = Router(
      limits: limits, isLoopback: true, proxies: TrustedProxies(), routing: HTTPBench.rule,
      trusted: nil, observer: nil, handler: HTTPBench.answer)
    let daemon = try #require(HTTPDaemon(identity: nil, site: site))
    let (listening, address) = try ListeningSocket.open(#require(ListenAddress("127.0.0.1:0")))
    var peer = sockaddr()
    peer.sa_family = sa_family_t(AF_INET)
    let clients = try (0..<40).map { _ in
      let client = try RawConnection(address)
      let taken = accept(listening, nil, nil)
      #expect(taken >= 0 && daemon.add(taken, &peer, socklen_t(MemoryLayout<sockaddr_in>.size)))
      return client
    }
    close(listening)
    for client in clients {
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
    }
    daemon.stop()
  }

  @Test("hundreds who come while nobody can be accepted stand in a queue, and need not dial again")
  func queue() throws {
    let (listening, address) = try ListeningSocket.open(
      #require(ListenAddress("127.0.0.1:0")))
    let clients = try (0..<600).map { _ in try RawConnection(address) }
    withExtendedLifetime(clients) { _ = close(listening) }
  }

  @Test("responses share their bytes: the last answer of a connection, and one to who has it")
  func shared() throws {
    let response = HTTPResponse(status: 200, headers: [], body: Array("body".utf8))
    #expect(response.closing.bytes === response.bytes && response.closing === response.closing)
    #expect(response.closing.body == Array("body".utf8))
    #expect(response.closing.closing === response.closing)
    let answer = CachedAnswer([1], entityTag: "\"a\"", lifetime: "no-cache")
    #expect(answer.response(ifNoneMatch: nil).bytes === answer.response(ifNoneMatch: "\"a\"").bytes)
  }

  @Test("bytes live as long as a response that sends them, and no longer")
  func lifetime() {
    weak var bytes: SharedBody?
    var response: HTTPResponse? = HTTPResponse(status: 200, headers: [], body: [1, 2])
    bytes = response?.bytes
    var last = response?.closing
    response = nil
    #expect(bytes != nil && last?.body == [1, 2])
    last = nil
    #expect(bytes == nil)
  }
}
