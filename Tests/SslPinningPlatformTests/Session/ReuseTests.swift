import Dispatch
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Connections that outlive a change of pins")
struct ReuseTests {
  @Test("are reused while the pins stand, and after a change that they still pass")
  func reused() async throws {
    let site = try PinnedSite()
    let session = site.session()
    for _ in 0..<3 { _ = try await session.data(from: site.url()) }
    #expect(site.server.counts.connections == 1)
    try site.judge.pin(["localhost": site.identity])
    for _ in 0..<2 { _ = try await session.data(from: site.url()) }
    #expect(site.server.counts.connections == 1)
    #expect(site.server.requests.count == 5)
  }

  @Test("are kept between bursts: the next one makes none anew", .timeLimit(.minutes(1)))
  func bursts() async throws {
    let gate = Gate(size: 6)
    let site = try PinnedSite { _ in
      gate.pass()
      return .text("hello")
    }
    let session = site.session()
    for _ in 0..<4 {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<gate.size {
          group.addTask { _ = try await session.data(from: site.url()) }
        }
        try await group.waitForAll()
      }
    }
    #expect(site.server.counts.connections == gate.size)
  }

  @Test(
    "are kept up to a bound, however many requests were under way at once", .timeLimit(.minutes(1)))
  func bounded() async throws {
    let gate = Gate(size: 20)
    let site = try PinnedSite { request in
      if request.target == "/burst" { gate.pass() }
      return .text("hello")
    }
    let second = try LocalTLSServer(identity: site.identity) { _ in .text("hello") }
    let session = site.session()
    // Twenty at once, for which libcurl alone would keep eighty connections.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<gate.size {
        group.addTask {
          _ = try await session.data(from: site.url("/burst", host: "h\(number).localhost"))
        }
      }
      try await group.waitForAll()
    }
    var urls: [URL] = []
    for (port, number) in [site.server.port, second.port].flatMap({ port in
      (0..<40).map { (port, $0) }
    }) {
      urls.append(try site.url(host: "h\(number).localhost", port: port))
    }
    for _ in 0..<2 {
      for url in urls { _ = try await session.data(from: url) }
    }
    // Had it kept them all, the second round would have made none.
    let made = site.server.counts.connections + second.counts.connections - gate.size
    #expect(made > urls.count)
  }

  @Test("carry no further request once their pin is removed")
  func removed() async throws {
    let site = try PinnedSite()
    let session = site.session()
    _ = try await session.data(from: site.url())
    try site.judge.pin(["localhost": site.rogueIdentity()])
    for _ in 0..<2 {
      let refusal = await site.refusal(of: try site.url(), over: session)
      #expect(refusal?.rule == "leaf-pin")
    }
    var post = URLRequest(url: try site.url())
    post.httpMethod = "POST"
    post.httpBody = Data(repeating: 65, count: 100_000)
    await #expect(throws: (any Error).self) { try await session.data(for: post) }
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.requests.count == 1)
    try site.judge.pin(["localhost": site.identity])
    _ = try await session.data(from: site.url())
  }

  @Test("carry no further request once their key is denied")
  func denied() async throws {
    let site = try PinnedSite()
    let session = site.session()
    _ = try await session.data(from: site.url())
    try site.judge.pin(["localhost": site.identity], denied: [site.identity])
    #expect(await site.refusal(of: try site.url(), over: session)?.rule == "denied-key")
    #expect(site.server.requests.count == 1)
  }

  @Test("are left for a fresh one where the server has the new key already")
  func rotated() async throws {
    let site = try PinnedSite()
    let session = site.session()
    _ = try await session.data(from: site.url())
    let next = try site.rogueIdentity()
    // The old connection stays open at the server; only new handshakes show the new key.
    try site.server.replaceIdentity(next)
    try site.judge.pin(["localhost": next])
    var post = URLRequest(url: try site.url())
    post.httpMethod = "POST"
    post.httpBody = Data(repeating: 66, count: 50_000)
    let (body, _) = try await session.data(for: post)
    #expect(String(decoding: body, as: UTF8.self) == "hello")
    #expect(site.server.requests.last?.body.count == 50_000)
    #expect(site.server.requests.count == 2)
    #expect(site.server.counts.connections == 2)
  }

  @Test("are left for a fresh one, and that one parked for newer pins, where both keys are unknown")
  func rotatedTwice() async throws {
    let site = try PinnedSite()
    let session = site.session()
    _ = try await session.data(from: site.url())
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    site.judge.onRefresh { judge in try? judge.pin(["localhost": next]) }
    _ = try await session.data(from: site.url())
    #expect(site.judge.refreshes.count == 1)
    #expect(site.server.requests.count == 2)
  }

  @Test(
    "are left to the long answer on them, which goes on: all other requests share one that passes",
    arguments: [(false, 6), (true, 6), (true, 1)])
  func leftToOthers(hasSession: Bool, most: Int) async throws {
    let site = try PinnedSite()
    let fleet = try await KeyedFleet(site, count: 2)
    let session = fleet.session(most: most)
    @Sendable func ask(_ path: String) async throws -> String {
      // Longer than `/slow` may take.
      let request = URLRequest(try fleet.url(path), timeout: 600)
      let (body, _) =
        hasSession
        ? try await session.data(for: request) : try await site.transport.data(for: request)
      return String(decoding: body, as: UTF8.self)
    }
    let slow = Task { try await ask("/slow") }
    #expect(await eventually { fleet.upstream.requests.count == 1 })
    try fleet.change(to: 1)
    for number in 0..<3 { #expect(try await ask("/\(number)") == "got /\(number)") }
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<6 { group.addTask { try await ask("/") } }
      for try await text in group { #expect(text == "got /") }
    }
    #expect(fleet.relay.connections == 2)
    fleet.gate.raise()
    #expect(try await slow.value == "got /slow")
    #expect(try await fleet.servers[0].accesses(waitingFor: 1).map(\.target) == ["/slow"])
    #expect(try await fleet.servers[1].accesses(waitingFor: 9).count == 9)
    try await fleet.stop()
  }

  @Test("carry only what they pass for, however often the pins change while one is in use")
  func manyChanges() async throws {
    let site = try PinnedSite()
    let fleet = try await KeyedFleet(site, count: 3)
    let session = fleet.session(most: 1)
    let slow = Task { try await session.data(from: fleet.url("/slow")).0 }
    #expect(await eventually { fleet.upstream.requests.count == 1 })
    for change in 0..<20 {
      try fleet.change(to: 1 + change % 2)
      let (body, _) = try await session.data(for: URLRequest(fleet.url(), timeout: 20))
      #expect(body == Data("got /".utf8))
    }
    fleet.gate.raise()
    #expect(try await slow.value == Data("got /slow".utf8))
    #expect(try await fleet.servers[0].accesses(waitingFor: 1).count == 1)
    for server in fleet.servers[1...] {
      #expect(try await server.accesses(waitingFor: 10).count == 10)
    }
    try await fleet.stop()
  }

  @Test("are left at once by a request that has waited for newer pins: they are fetched once")
  func leftAfterRefresh() async throws {
    let site = try PinnedSite()
    let fleet = try await KeyedFleet(site, count: 2, http2: false)
    let session = fleet.session(most: 2)
    let slow = Task { try await session.data(from: fleet.url("/slow")).0 }
    #expect(await eventually { fleet.upstream.requests.count == 1 })
    // Another connection shows a key that nobody knows. Before it is pinned, the first one is free for the replay.
    fleet.turn(to: 1)
    site.judge.onRefresh { judge in
      fleet.gate.raise()
      let body = try? await slow.value
      #expect(body == Data("got /slow".utf8))
      try? judge.pin(["localhost": fleet.identities[1]])
    }
    let request = URLRequest(try fleet.url(), timeout: 600)
    #expect(try await session.data(for: request).0 == Data("got /".utf8))
    #expect(site.judge.refreshes.count == 1)
    #expect(fleet.relay.connections == 3)
    #expect(try await fleet.servers[0].accesses(waitingFor: 1).map(\.target) == ["/slow"])
    #expect(try await fleet.servers[1].accesses(waitingFor: 1).map(\.target) == ["/"])
    try await fleet.stop()
  }

  @Test("that newer pins permit are shared by the requests that waited for these together")
  func parkedTogether() async throws {
    let site = try PinnedSite()
    let fleet = try await KeyedFleet(site, count: 2)
    let session = fleet.session(most: 1)
    fleet.turn(to: 1)
    site.judge.onRefresh { judge in
      // All have met the unknown key by then.
      _ = await eventually { judge.refreshes.count == 7 }
      try? judge.pin(["localhost": fleet.identities[1]])
    }
    let slow = Task { try await session.data(from: fleet.url("/slow")).0 }
    try await withThrowingTaskGroup(of: Data.self) { group in
      for _ in 0..<6 {
        group.addTask {
          try await session.data(for: URLRequest(fleet.url(), timeout: 20)).0
        }
      }
      for try await body in group { #expect(body == Data("got /".utf8)) }
    }
    #expect(await eventually { fleet.upstream.requests.count == 7 })
    fleet.gate.raise()
    #expect(try await slow.value == Data("got /slow".utf8))
    let accesses = try await fleet.servers[1].accesses(waitingFor: 7)
    #expect(Set(accesses.map(\.connection)).count == 1)
    try await fleet.stop()
  }
}

/// Servers with a key each behind one address: connections stay where they led. `/slow` is under way until the gate is
/// raised.
private struct KeyedFleet {
  let gate: EventSignal
  let upstream: LocalHTTPServer
  let identities: [ServerIdentity]
  let servers: [Nginx]
  let relay: SwitchableRelay
  private let site: PinnedSite

  init(_ site: PinnedSite, count: Int, http2: Bool = true) async throws {
    let gate = try EventSignal()
    let upstream = try LocalHTTPServer { request in
      // why: until the test lets it go on
      if request.path == "/slow" { _ = gate.sleep(milliseconds: 60_000) }
      return .text("got \(request.path)")
    }
    let identities = try [site.identity] + (1..<count).map { _ in try site.rogueIdentity() }
    var servers: [Nginx] = []
    for identity in identities {
      servers.append(
        try await Nginx.start(
          Nginx.Site(
            identity, name: "localhost", http2: http2,
            directives: "location / { proxy_pass http://127.0.0.1:\(upstream.port); }")))
    }
    self.site = site
    self.gate = gate
    self.upstream = upstream
    self.identities = identities
    self.servers = servers
    relay = try SwitchableRelay(to: .loopback(servers[0].port))
  }

  func url(_ path: String = "/") throws -> URL { try site.url(path, port: relay.port) }

  func session(most: Int) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = most
    return site.session(configuration)
  }

  /// Connections lead to this server from now on.
  func turn(to server: Int) {
    relay.redirect(to: .loopback(servers[server].port), closingConnections: false)
  }

  /// Its key becomes the only one that is pinned, too.
  func change(to server: Int) throws {
    turn(to: server)
    try site.judge.pin(["localhost": identities[server]])
  }

  func stop() async throws {
    // What it does may hold this, and the judge with it.
    site.judge.onRefresh(nil)
    for server in servers { try await server.stop() }
  }
}

/// Lets threads go on once so many are there.
private final class Gate: Sendable {
  let size: Int
  private let here = Locked(0)
  private let all = DispatchSemaphore(value: 0)

  init(size: Int) { self.size = size }

  func pass() {
    let isLast = here.withLock { here in
      here = (here + 1) % size
      return here == 0
    }
    if isLast { for _ in 1..<size { all.signal() } } else { all.wait() }
  }
}
