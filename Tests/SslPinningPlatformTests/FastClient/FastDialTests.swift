import FaultLab
import Foundation
import FoundationNetworking
import TLSTools
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("Requests without a session, while connections are being made", .timeLimit(.minutes(3)))
struct FastDialTests {
  private let hello = End.served(200, "hello")

  @Test("go on where a host turns out to give each request a connection, while one goes ahead")
  func learnedLate() async throws {
    let site = try PinnedSite { request in
      HTTPResponse(
        body: Array("hello".utf8), delayMilliseconds: request.target == "/slow" ? 12_000 : 10)
    }
    var settings = RequestSettings()
    settings.perOrigin = 8 * settings.lanes
    let transport = try PinnedTransport(
      trust: .anchors([site.authority.root.der]), judge: site.judge, longestRefresh: 60,
      settings: settings)
    let lost = try SwitchableRelay(to: .loopback(site.server.port))
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let url = try site.url(port: relay.port)
    let slow = try site.url("/slow", port: relay.port)
    let first = Task { await transport.end(of: URLRequest(slow, timeout: 60)) }
    #expect(await eventually { site.server.requests.count == 1 })
    lost.suspend(true)
    relay.redirect(to: .loopback(lost.port), closingConnections: false)
    // With the first one they take all places, and then leave them to the others.
    let hanging = (0..<7).map { _ in Task { await transport.end(of: URLRequest(url, timeout: 8)) }
    }
    #expect(await eventually { relay.connections == 8 })
    let queued = (0..<10).map { _ in Task { await transport.end(of: URLRequest(url, timeout: 60)) }
    }
    for task in hanging { #expect(await task.value == .failed(.timedOut)) }
    // One of the others has gone ahead by now.
    relay.redirect(to: .loopback(site.server.port), closingConnections: false)
    #expect(await first.value == hello)
    var served = 0
    for task in queued where await task.value == hello { served += 1 }
    // The one that went ahead waits for its own.
    #expect(served >= 9)
  }

  @Test("stay on a connection that serves when one that was given up stands at last")
  func lateDial() async throws {
    let site = try PinnedSite()
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: true,
        directives: "location / { return 200 \"hello\"; }"))
    let sick = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(sick.port))
    sick.suspend(true)
    let url = try site.url(port: relay.port)
    let patient = Task { await site.transport.end(of: URLRequest(url, timeout: 60)) }
    #expect(await eventually { relay.connections == 1 })
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    for _ in 0..<3 {
      #expect(await site.transport.end(of: URLRequest(url, timeout: 30)) == hello)
    }
    sick.suspend(false)
    #expect(await patient.value == hello)
    // It carries nothing any more; nor does anybody need it.
    sick.suspend(true)
    for _ in 0..<3 {
      #expect(await site.transport.end(of: URLRequest(url, timeout: 5)) == hello)
    }
    try await nginx.stop()
  }

  @Test("leave a dial that hangs once another one stands")
  func leftDial() async throws {
    let site = try PinnedSite()
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: true,
        directives: "location / { return 200 \"hello\"; }"))
    let dead = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(dead.port))
    dead.suspend(true)
    let url = try site.url(port: relay.port)
    // Of the three the first dials, and the others are taken from behind it, one after the other.
    let patient = (0..<3).map { _ in
      Task { await site.transport.end(of: URLRequest(url, timeout: 60)) }
    }
    #expect(await eventually { relay.connections == 2 })
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    for task in patient { #expect(await task.value == hello) }
    try await nginx.stop()
  }

  @Test(
    "have all their patience again after newer pins were fetched, however long they waited before")
  func patienceAfterRefresh() async throws {
    let site = try PinnedSite()
    let dead = try SwitchableRelay(to: .loopback(site.server.port))
    let relay = try SwitchableRelay(to: .loopback(dead.port))
    let good = try SwitchableRelay(to: .loopback(site.server.port))
    dead.suspend(true)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    let identity = site.identity
    site.judge.onRefresh { judge in
      good.suspend(true)
      // why: the loop's patience runs by its own clock, and this wait is to be more than half of it.
      try? await Task.sleep(for: .milliseconds(2500))
      try? judge.pin(["localhost": identity])
      Task {
        // why: so is this one.
        try? await Task.sleep(for: .milliseconds(2500))
        good.suspend(false)
      }
    }
    let url = try site.url(port: relay.port)
    let hanging = Task { await site.transport.end(of: URLRequest(url, timeout: 60)) }
    #expect(await eventually { relay.connections == 1 })
    relay.redirect(to: .loopback(good.port), closingConnections: false)
    #expect(await site.transport.end(of: URLRequest(url, timeout: 4)) == hello)
    hanging.cancel()
  }
}
