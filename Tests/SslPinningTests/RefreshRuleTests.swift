import CanonicalJSON
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinning

@Suite("When pins change, and who asks for newer ones")
struct RefreshRuleTests {
  private static let day: Int64 = 86400

  private let authority: CertificateAuthority
  private let identity: ServerIdentity
  private let server: LocalTLSServer
  private let registry: TestRegistry
  private let wall = Locked(Int64(Date().timeIntervalSince1970))

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Refresh test root")
    identity = try authority.issue(names: ["localhost"])
    server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    registry = try TestRegistry()
  }

  private var clocks: Clocks {
    Clocks(
      wall: { [wall] in wall.withLock { $0 } }, steady: Clocks.system.steady, longestRefresh: 60)
  }

  private func advance(_ seconds: Int64) { wall.withLock { $0 += seconds } }

  /// Publishes the server's key for these hosts, each with the seconds from now until it expires.
  private func publish(_ hosts: [String: Int64?]) throws {
    let now = wall.withLock { $0 }
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    let document = try TestRegistry.document(
      hosts.sorted { $0.key < $1.key }.map { host, seconds in
        var entry: JSONObject = ["domainName": .string(host), "key": .string(pin)]
        if let seconds { entry["expire"] = JSONNumber(exactly: now + seconds).map { .number($0) } }
        return .object(entry)
      })
    registry.answer(
      HTTPResponse(headers: [HTTPField("ETag", TestRegistry.tag(of: document))], body: document))
  }

  private func client() async throws -> SslPinningClient {
    try await SslPinningClient(
      config: registry.config(trust: .anchors([authority.root.der])), clocks: clocks)
  }

  private func refusal(_ client: SslPinningClient, _ session: URLSession) async -> PinEvaluation? {
    do {
      let url = try #require(URL(string: "https://localhost:\(server.port)/"))
      _ = try await session.data(from: url)
      return nil
    } catch {
      return client.refusal(for: error)
        ?? PinEvaluation(host: "\(error)", outcome: .unjudged("no refusal"), decision: .refuse)
    }
  }

  @Test("a refusal joins the refresh that another just asked for, before that has begun")
  func flight() async throws {
    try publish(["localhost": nil])
    let config = try registry.config()
    let url = try RegistryURL(registry.url)
    let fetcher = try DocumentFetcher(trust: .anchors([]))
    let isOpen = Locked(true)
    let keeper = try await RegistryUpdater(
      config: config,
      source: .whole { ask in
        _ = await eventually { isOpen.withLock { $0 } }
        let request = DocumentRequest(url: url, maximumBytes: 1 << 20, timeout: 30)
        do throws(FetchError) { return .success(try await fetcher.fetch(request)) } catch {
          return .failure(error)
        }
      },
      trust: RegistryTrust(config, name: url.lastPathComponent), store: nil, clocks: clocks)
    let refused = PinEvaluation(
      host: "localhost", outcome: .mismatch(.leaf), decision: .refuse,
      presented: [try SPKIPin(certificateDER: authority.root.der)])
    // Parallel requests of one app meet the rotated server at once: none may be refused for good
    // while the answer to the first is still under way.
    isOpen.withLock { $0 = false }
    for _ in 0..<3 { #expect(keeper.requestRefresh(after: refused)) }
    isOpen.withLock { $0 = true }
    for _ in 0..<3 { await keeper.refresh(after: refused) }
    #expect(registry.server.requests.count == 2)
    #expect(!keeper.requestRefresh(after: refused))
  }

  @Test("a host that vanished too long ago leaves open connections too")
  func vanishedForGood() async throws {
    try publish(["localhost": nil])
    let client = try await client()
    let session = client.createPinnedSession()
    try publish(["other.localhost": nil])
    #expect(try await client.refresh())
    #expect(await refusal(client, session) == nil)
    advance(31 * Self.day)
    // Status 304: the document is the same, what is believed is not.
    #expect(try await client.refresh())
    #expect(await refusal(client, session)?.outcome == .unlisted)
    #expect(server.requests.count == 1)
  }

  @Test("a clock that was wrong for a while locks nobody out once it is right again")
  func wrongClock() async throws {
    try publish(["localhost": 90 * Self.day])
    let client = try await client()
    advance(4000 * Self.day)
    _ = try await client.refresh()
    advance(-4000 * Self.day)
    #expect(await refusal(client, client.createPinnedSession()) == nil)
  }

  @Test("a pin that expires closes open connections to its host")
  func expiry() async throws {
    try publish(["localhost": 1000])
    let client = try await client()
    let session = client.createPinnedSession()
    advance(1000 + PinSet.expiryTolerance)
    for _ in 0..<2 { #expect(await refusal(client, session) == nil) }
    #expect(server.counts.connections == 1)
    advance(1)
    #expect(await refusal(client, session)?.outcome == .noLivePin)
    #expect(server.requests.count == 2)
  }

  @Test(
    "no time-out is endless, and none is too long to count", arguments: [0, -1, .nan] as [Double])
  func shortTimeouts(seconds: Double) async throws {
    registry.answer(HTTPResponse(body: [1], delayMilliseconds: 3000))
    var config = try registry.config()
    config.fetchTimeout = seconds
    do {
      _ = try await SslPinningClient(config: config)
      Issue.record("made")
    } catch {
      guard case .unreachable = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("a time-out may be longer than any clock runs", arguments: [.infinity, 1e300] as [Double])
  func longTimeouts(seconds: Double) async throws {
    try publish(["localhost": nil])
    var config = try registry.config()
    config.fetchTimeout = seconds
    let client = try await SslPinningClient(config: config)
    #expect(client.registryStatus.origin == .network)
  }
}
