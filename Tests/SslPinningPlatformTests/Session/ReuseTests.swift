import Dispatch
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
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
