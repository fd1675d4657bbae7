import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Changing pins under requests without a session")
struct FastChangeTests {
  @Test("keeps a connection that still passes")
  func kept() async throws {
    let site = try PinnedSite()
    let url = try site.url()
    for _ in 0..<2 { _ = await site.transport.end(of: url) }
    try site.judge.pin(["localhost": site.identity])
    for _ in 0..<2 { #expect(await site.transport.end(of: url) == .served(200, "hello")) }
    #expect(site.server.counts.connections == 1)
    #expect(site.judge.recorded.count == 2)
  }

  @Test("lets no further request over a connection whose pin is removed, and comes back")
  func removed() async throws {
    let site = try PinnedSite()
    let url = try site.url()
    _ = await site.transport.end(of: url)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    for _ in 0..<2 { #expect(await site.transport.end(of: url) == .refused("leaf-pin")) }
    let post = URLRequest(url, method: "POST", body: Data(repeating: 65, count: 100_000))
    #expect(await site.transport.end(of: post) == .refused("leaf-pin"))
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.requests.count == 1)
    try site.judge.pin(["localhost": site.identity])
    #expect(await site.transport.end(of: url) == .served(200, "hello"))
  }

  @Test("leaves a kept connection for a fresh one where the server has the new key already")
  func rotated() async throws {
    let site = try PinnedSite(handler: echo)
    let url = try site.url()
    _ = await site.transport.end(of: url)
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    try site.judge.pin(["localhost": next])
    let post = URLRequest(url, method: "POST", body: Data(repeating: 66, count: 50_000))
    #expect(await site.transport.end(of: post) == .served(200, "POST 50000"))
    #expect(site.server.counts.connections == 2)
  }

  /// A site whose server has rotated; a refresh brings the new pins.
  private func rotatedSite() throws -> PinnedSite {
    let site = try PinnedSite(handler: echo)
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    site.judge.onRefresh { judge in try? judge.pin(["**.localhost": next]) }
    return site
  }

  @Test("by a refresh after a mismatch serves the request that met it, body and all")
  func refreshed() async throws {
    let site = try rotatedSite()
    let post = URLRequest(
      try site.url(), method: "POST", body: Data(repeating: 66, count: 300_000))
    #expect(await site.transport.end(of: post) == .served(200, "POST 300000"))
    #expect(site.judge.refreshes.map(\.rule) == ["leaf-pin"])
    #expect(site.server.requests.count == 1)
    let other = try rotatedSite()
    let chunks = AsyncStream<Data> { continuation in
      for _ in 0..<10 { continuation.yield(Data(repeating: 1, count: 1000)) }
      continuation.finish()
    }
    let request = URLRequest(try other.url(), method: "PUT")
    let (body, _) = try await other.transport.upload(for: request, from: chunks)
    #expect(String(decoding: body, as: UTF8.self) == "PUT 10000")
  }

  @Test("serves a request whose kept connection dies in the rotation, where it may be sent twice")
  func deadInRotation() async throws {
    let served = Locked(0)
    let site = try PinnedSite { request in
      // GET, GET on a connection that dies, the same once more; POST, POST on one that dies.
      let number = served.withLock { served in
        served += 1
        return served
      }
      return [2, 5].contains(number) ? HTTPResponse(delivery: .hangUp) : echo(request)
    }
    for method in ["GET", "POST"] {
      let next = try site.rogueIdentity()
      let request = URLRequest(try site.url(), method: method)
      #expect(await site.transport.end(of: request) == .served(200, "\(method) 0"))
      try site.server.replaceIdentity(next)
      site.judge.onRefresh { judge in try? judge.pin(["**.localhost": next]) }
      let isServed = method == "GET"
      #expect(
        await site.transport.end(of: request)
          == (isServed ? .served(200, "GET 0") : .failed(.networkConnectionLost)))
      #expect(site.judge.recorded.contains { $0.rule == "leaf-pin" } == !isServed)
      #expect(await eventually { site.judge.refreshes.count == (isServed ? 1 : 2) })
    }
  }

  @Test("by a refresh that brings nothing changes nothing: the second verdict is final")
  func final() async throws {
    let site = try PinnedSite()
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in }
    #expect(await site.transport.end(of: try site.url()) == .refused("leaf-pin"))
    #expect(site.judge.refreshes.count == 1)
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.counts.connections == 2)
    #expect(site.server.counts.applicationBytesReceived == 0)
  }

  @Test("by a refresh that never ends is not waited for", arguments: [true, false])
  func endless(byRequest: Bool) async throws {
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let site = try PinnedSite(longestRefresh: byRequest ? 60 : 0.5)
    try site.server.replaceIdentity(site.rogueIdentity())
    // Outlives the transport's patience, and not the test: what waits on is a leak.
    site.judge.onRefresh { _ in _ = await eventually { isOver.withLock { $0 } } }
    let request = URLRequest(try site.url(), timeout: byRequest ? 1 : 60)
    #expect(await site.transport.end(of: request) == .refused("leaf-pin"))
  }

  @Test(
    "ends with the first verdict if the other connection fails, unless newer pins have the key",
    arguments: [false, true])
  func hungUp(isPinned: Bool) async throws {
    let site = try PinnedSite()
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    site.judge.onRefresh { [server = site.server] judge in
      if isPinned { try? judge.pin(["**.localhost": next]) }
      server.stop()
    }
    #expect(
      await site.transport.end(of: try site.url())
        == (isPinned ? .failed(.cannotConnectToHost) : .refused("leaf-pin")))
    #expect(site.judge.recorded.map(\.rule) == (isPinned ? [] : ["leaf-pin"]))
  }

  @Test(
    "tells the first verdict also if the other connection passes, unless newer pins have the key",
    arguments: [false, true])
  func letThrough(isPinned: Bool) async throws {
    let site = try PinnedSite()
    let other = try site.rogueIdentity()
    try site.server.replaceIdentity(other)
    site.judge.onRefresh { [server = site.server, own = site.identity] judge in
      if isPinned { try? judge.pin(["localhost": own, "**.localhost": other]) }
      try? server.replaceIdentity(own)
    }
    #expect(await site.transport.end(of: try site.url()) == .served(200, "hello"))
    #expect(site.judge.recorded.map(\.rule) == (isPinned ? [] : ["leaf-pin"]) + ["matched"])
    #expect(site.server.requests.count == 1)
  }

  @Test(
    "tells the first verdict also if the other connection is refused for something else",
    arguments: ["chain", "leaf-pin", nil])
  func refusedForAnother(fault: String?) async throws {
    let site = try PinnedSite()
    let first = try site.rogueIdentity()
    try site.server.replaceIdentity(first)
    // Of no authority; of the same one; the same key again.
    let second =
      switch fault {
      case "chain":
        try CertificateAuthority.makeRoot(name: "Other root").issue(names: PinnedSite.names)
      case nil: first
      default: try site.rogueIdentity()
      }
    site.judge.onRefresh { [server = site.server] _ in try? server.replaceIdentity(second) }
    let (later, isToldOnce) = (fault ?? "leaf-pin", fault == nil)
    #expect(await site.transport.end(of: try site.url()) == .refused(later))
    #expect(site.judge.recorded.map(\.rule) == ["leaf-pin"] + (isToldOnce ? [] : [later]))
  }

  @Test(
    "is told if the request's time is over first, or if it is cancelled", arguments: [1.0, nil])
  func late(seconds: Double?) async throws {
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let site = try PinnedSite()
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in _ = await eventually { isOver.withLock { $0 } } }
    let request = URLRequest(url: try site.url())
    let task = Task { await site.transport.end(of: request, within: seconds) }
    if seconds == nil {
      #expect(await eventually { !site.judge.refreshes.isEmpty })
      task.cancel()
    }
    #expect(await task.value == (seconds == nil ? .failed(.cancelled) : .refused("leaf-pin")))
    #expect(site.judge.recorded.map(\.rule) == ["leaf-pin"])
  }

  @Test("can be waited for by sixty-four requests; a cancelled one waits no longer")
  func parked() async throws {
    let site = try PinnedSite()
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    let gate = Locked(false)
    site.judge.onRefresh { judge in
      _ = await eventually { gate.withLock { $0 } }
      try? judge.pin(["**.localhost": next])
    }
    let url = try site.url()
    let ends = await withTaskGroup(of: End.self) { group in
      for _ in 0..<64 { group.addTask { await site.transport.end(of: url) } }
      let cancelled = Task { await site.transport.end(of: url) }
      _ = await eventually { site.judge.refreshes.count == 65 }
      cancelled.cancel()
      #expect(await cancelled.value == .failed(.cancelled))
      gate.withLock { $0 = true }
      return await group.reduce(into: [End]()) { $0.append($1) }
    }
    #expect(ends.count == 64)
    #expect(ends.allSatisfy { $0 == .served(200, "hello") })
  }
}
