import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// With a dot at its end no libcurl knows a name below `localhost` by itself, and no resolver here does:
/// what older ones ask about every name is shown by it.
@Suite("A name below localhost")
struct LocalhostNamesTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  @Test(
    "is this machine without asking anybody",
    arguments: ["localhost.", "a.localhost.", "A.LocalHost.", "b.localhost", "localhost"])
  func requests(host: String) async throws {
    let url = try site.url(host: host)
    #expect(await site.transport.end(of: url) == .served(200, "hello"))
    let body = try await site.session().data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "hello")
    let fetcher = try DocumentFetcher(trust: .anchors([site.authority.root.der]))
    let request = DocumentRequest(
      url: try RegistryURL(url.absoluteString), maximumBytes: 100, timeout: 20)
    #expect(try await fetcher.fetch(request) == .fresh(Array("hello".utf8), etag: nil))
  }

  @Test(
    "is no name that merely ends so", arguments: ["notlocalhost.", "a-localhost.", "x.invalid."])
  func others(host: String) async throws {
    try site.judge.pin([host: site.identity])
    let url = try site.url(host: host)
    #expect(await site.transport.end(of: url) == .failed(.cannotFindHost))
    await #expect(throws: URLError.self) { try await site.session().data(from: url) }
    #expect(site.server.counts.connections == 0)
  }

  @Test("does not stay behind for the next request on the same handle")
  func nextRequest() async throws {
    for host in ["a.localhost.", "127.0.0.1", "b.localhost.", "localhost"] {
      #expect(await site.transport.end(of: try site.url(host: host)) == .served(200, "hello"))
    }
  }
}
