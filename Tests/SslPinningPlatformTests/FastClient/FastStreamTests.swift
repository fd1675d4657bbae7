import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Open streams of requests without a session")
struct FastStreamTests {
  private let site: PinnedSite

  /// `/open` sends a head and then nothing; everything else is answered.
  init() throws {
    site = try PinnedSite { request in
      request.path == "/open"
        ? HTTPResponse(body: [7], delivery: .endless(pauseMilliseconds: 600_000)) : .text("hello")
    }
  }

  private func transport(_ change: (inout RequestSettings) -> Void) throws -> PinnedTransport {
    var settings = RequestSettings()
    change(&settings)
    return try PinnedTransport(
      trust: .anchors([site.authority.root.der]), judge: site.judge, longestRefresh: 60,
      settings: settings)
  }

  /// Opens streams, all at once or each after the last; without those that had no head in time.
  private func open(
    _ count: Int, over transport: PinnedTransport, host: String = "localhost", atOnce: Bool = false
  ) async throws -> [ResponseChunks] {
    let request = URLRequest(try site.url("/open", host: host), timeout: 120)
    let stream = { @Sendable in try? await transport.bytes(for: request, within: 60).0 }
    var opened: [ResponseChunks] = []
    guard atOnce else {
      for _ in 0..<count { if let one = await stream() { opened.append(one) } }
      return opened
    }
    await withTaskGroup(of: ResponseChunks?.self) { group in
      for _ in 0..<count { group.addTask { await stream() } }
      for await one in group { if let one { opened.append(one) } }
    }
    return opened
  }

  /// How another stream ends whose request may wait for so long; `nil`: it was opened.
  private func openLate(
    over transport: PinnedTransport, host: String = "localhost", timeout: Double
  ) async throws -> URLError.Code? {
    do {
      _ = try await transport.bytes(
        for: URLRequest(try site.url("/open", host: host), timeout: timeout), within: 60)
      return nil
    } catch { return (error as? URLError)?.code }
  }

  @Test(
    "are as many as the host may have, and keep none of its other requests waiting",
    arguments: [false, true])
  func beside(atOnce: Bool) async throws {
    let transport = try transport { $0.perOrigin = 16 }
    let streams = try await open(16, over: transport, atOnce: atOnce)
    #expect(streams.count == 16)
    for _ in 0..<40 {
      let end = await transport.end(of: URLRequest(try site.url(), timeout: 30))
      guard end == .served(200, "hello") else {
        Issue.record("\(end)")
        break
      }
    }
    #expect(site.server.requests.filter { $0.path == "/open" }.count == 16)
    withExtendedLifetime(streams) {}
  }

  @Test("beyond those end by their own time-out, and begin where another ends")
  func beyond() async throws {
    let transport = try transport { $0.perOrigin = 16 }
    var streams = try await open(16, over: transport)
    for _ in 0..<3 {
      #expect(try await openLate(over: transport, timeout: 0.2) == .timedOut)
    }
    #expect(site.server.requests.count == 16)
    for _ in 0..<8 {
      streams.removeFirst()
      streams += try await open(1, over: transport)
    }
    #expect(streams.count == 16)
  }

  @Test("to many hosts leave room for other requests")
  func manyHosts() async throws {
    let transport = try transport {
      $0.perOrigin = 8
      $0.total = 16
    }
    let streams =
      try await open(8, over: transport, host: "a.localhost")
      + open(6, over: transport, host: "b.localhost")
    #expect(streams.count == 14)
    #expect(try await openLate(over: transport, host: "h1.localhost", timeout: 0.2) == .timedOut)
    for host in ["a.localhost", "h1.localhost"] {
      let request = URLRequest(try site.url(host: host), timeout: 30)
      #expect(await transport.end(of: request) == .served(200, "hello"))
    }
    withExtendedLifetime(streams) {}
  }

  @Test("or other requests that wait for a place end by their own time-out")
  func queued() async throws {
    let slow = try PinnedSite { _ in HTTPResponse(body: [65], delayMilliseconds: 600_000) }
    try slow.server.replaceIdentity(site.identity)
    let transport = try transport { $0.perOrigin = 1 }
    let url = try site.url(port: slow.server.port)
    let first = Task { await transport.end(of: URLRequest(url, timeout: 60)) }
    #expect(await eventually { slow.server.requests.count == 1 })
    let late = await transport.end(of: URLRequest(url, timeout: 0.2))
    #expect(late == .failed(.timedOut))
    first.cancel()
    #expect(await first.value == .failed(.cancelled))
    #expect(slow.server.requests.count == 1)
  }
}
