import Foundation
import FoundationNetworking
import Pinning
import PinningPlatform
import TLSTools
import Testing

/// The site's certificate runs from an hour ago for 90 days, its authorities' for years.
@Suite("The time that chains are held to")
struct JudgedTimeTests {
  private static let day: Int64 = 86_400
  private let now = Int64(Date().timeIntervalSince1970)

  @Test(
    "is the judge's in a handshake, whatever the machine's clock says",
    arguments: [
      ("400 days back", -400, false), ("today", 0, true), ("the last day", 89, true),
      ("91 days on", 91, false),
    ])
  func handshake(name: String, days: Int64, isServed: Bool) async throws {
    let site = try PinnedSite()
    site.judge.setTime(now + days * Self.day)
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect((refusal == nil) == isServed, "\(name)")
    if !isServed {
      #expect(refusal?.rule == "chain")
      #expect(await site.server.waitUntilIdle())
    }
    #expect(site.server.requests.count == (isServed ? 1 : 0))
  }

  @Test("is the floor that a judge holds against a clock set back, and the later clock otherwise")
  func floor() async throws {
    let site = try PinnedSite()
    let issued = now - 600
    for (clock, isServed) in [(now - 400 * Self.day, true), (now + 400 * Self.day, false)] {
      site.judge.setTime(max(clock, issued))
      let refusal = await site.refusal(of: try site.url(), over: site.session())
      #expect((refusal == nil) == isServed)
    }
    site.judge.setTime(now - 400 * Self.day)
    #expect(await site.refusal(of: try site.url(), over: site.session())?.rule == "chain")
  }

  @Test("is the machine's where the judge has none")
  func systemClock() async throws {
    let site = try PinnedSite()
    #expect(await site.refusal(of: try site.url(), over: site.session()) == nil)
    let expired = try site.authority.issue(
      names: PinnedSite.names, key: site.identity.key,
      validity: Validity(notBefore: now - 2 * Self.day, notAfter: now - Self.day))
    try site.server.replaceIdentity(expired, closingConnections: true)
    #expect(await site.refusal(of: try site.url(), over: site.session())?.rule == "chain")
  }

  @Test("is the request's for a fetched document")
  func fetch() async throws {
    let site = try PinnedSite()
    let fetcher = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
    for (time, isFetched) in [
      (nil, true), (now, true), (now + 89 * Self.day, true), (now + 91 * Self.day, false),
      (now - 400 * Self.day, false), (0, false),
    ] as [(Int64?, Bool)] {
      let request = DocumentRequest(
        url: try RegistryURL("https://localhost:\(site.server.port)/"), maximumBytes: 100,
        timeout: 60, at: time)
      do throws(FetchError) {
        #expect(try await fetcher.fetch(request) == .fresh(Array("hello".utf8), etag: nil))
        #expect(isFetched, "\(String(describing: time))")
      } catch {
        guard case .unreachable = error else {
          Issue.record("\(error)")
          continue
        }
        #expect(!isFetched, "\(String(describing: time))")
      }
    }
    #expect(site.server.requests.count == 3)
  }
}
