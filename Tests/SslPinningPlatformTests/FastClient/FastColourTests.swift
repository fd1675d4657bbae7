import CSslPinningShims
import Foundation
import Synchronization
import Testing

@testable import SslPinningPlatform

@Suite("The colours of connections")
struct FastColourTests {
  private func request(_ target: RequestTarget, mark: Int64 = 0) -> ClientRequest {
    let request = ClientRequest(
      target: target, place: target.origin.enter(streams: false), method: "GET", headers: [:],
      body: .none, timeout: 60_000, deadline: .max, feed: nil)
    request.mark = mark
    return request
  }

  private func target() throws -> RequestTarget {
    try RequestTargets(settings: RequestSettings()).target(
      for: try #require(URL(string: "https://localhost/")))
  }

  @Test("change once for all requests that were late with one network")
  func changesOnce() throws {
    let target = try target()
    for _ in 0..<Int(PP_COLOURS) { ConnectionColours.change(target.origin, from: 0, at: 1000) }
    let mark = target.origin.mark.load(ordering: .relaxed)
    #expect(ConnectionColours.colour(of: mark) == 1)
    ConnectionColours.change(target.origin, from: mark, at: 2000)
    for late in [0, mark] { ConnectionColours.change(target.origin, from: late, at: 3000) }
    #expect(target.origin.mark.load(ordering: .relaxed) == 2000 << 3 | 2)
  }

  /// The origin's colour after one change at `now`.
  private func change(_ target: RequestTarget, at now: Int64) -> UInt32 {
    ConnectionColours.change(
      target.origin, from: target.origin.mark.load(ordering: .relaxed), at: now)
    return ConnectionColours.colour(of: target.origin.mark.load(ordering: .relaxed))
  }

  @Test("go through all but the first, which plain requests have")
  func cycle() throws {
    let target = try target()
    #expect((Int64(1)...9).map { change(target, at: $0) } == [1, 2, 3, 4, 5, 6, 7, 1, 2])
  }

  @Test("are given again only once libcurl uses no connection that has them")
  func notAgain() throws {
    let target = try target()
    for colour in UInt32(1)...7 {
      target.origin.colours.enter(colour)
      target.origin.colours.exit(colour, at: Int64(colour) * 1000)
    }
    target.origin.colours.enter(1)
    let end = 2000 + ColourUses.idle
    #expect(target.origin.apartUntil.load(ordering: .relaxed) == 0)
    #expect((0..<7).map { change(target, at: $0) } == Array(repeating: 0, count: 7))
    #expect(change(target, at: end) == 0)
    // None is free: each request has a connection of its own until libcurl uses none of those in doubt.
    #expect(target.origin.apartUntil.load(ordering: .relaxed) == end + ColourUses.idle)
    #expect(change(target, at: end + 1) == 2)
    #expect(target.origin.apartUntil.load(ordering: .relaxed) == 0)
    #expect(change(target, at: end + 2) == 2)
    #expect(change(target, at: end + 1001) == 3)
    // Somebody waits on a connection of the first one still.
    #expect(change(target, at: end + 10_000) == 4)
    for _ in 0..<3 { _ = change(target, at: end + 10_000) }
    #expect(change(target, at: end + 10_000) == 2)
    target.origin.colours.exit(1, at: end + 10_000)
  }

  @Test("are not needed while each request opens a connection of its own")
  func apart() async throws {
    let site = try PinnedSite()
    let url = try site.url()
    let origin = try site.transport.client.targets.target(for: url).origin
    for (until, connections): (Int64, Int) in [(0, 1), (.max, 3), (0, 3)] {
      origin.apartUntil.store(until, ordering: .relaxed)
      for _ in 0..<2 { #expect(await site.transport.end(of: url) == .served(200, "hello")) }
      #expect(site.server.counts.connections == connections)
    }
  }

  @Test("go back to the first once libcurl uses no connection from before, and nobody waits on one")
  func goBack() throws {
    let target = try target()
    ConnectionColours.change(target.origin, from: 0, at: 1000)
    let mark = target.origin.mark.load(ordering: .relaxed)
    let end = 1000 + ConnectionColours.longest
    let (new, old) = (request(target), request(target))
    #expect(ConnectionColours.mark(for: new, among: [new], at: end) == mark)
    #expect(ConnectionColours.mark(for: new, among: [old, new], at: end + 1) == mark)
    let later = request(target, mark: mark)
    #expect(ConnectionColours.mark(for: new, among: [later, new], at: end + 1) == 0)
    #expect(target.origin.mark.load(ordering: .relaxed) == 0)
  }
}
