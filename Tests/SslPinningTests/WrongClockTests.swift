import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("A client on a device whose clock is wrong")
struct WrongClockTests {
  private let authority: CertificateAuthority
  private let identity: ServerIdentity
  private let server: LocalTLSServer
  private let registry: TestRegistry

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Clock test root")
    identity = try authority.issue(names: ["localhost"])
    server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    registry = try TestRegistry()
    try registry.publish([("localhost", identity)])
  }

  @Test(
    "judges chains by that clock, and not by the machine's",
    arguments: [(-400, false), (0, true), (89, true), (400, false)])
  func sessions(days: Int64, isServed: Bool) async throws {
    let clocks = Clocks(
      wall: { Clocks.system.wall() + days * 86_400 }, steady: { 1000 }, longestRefresh: 60)
    let client = try await SslPinningClient(
      config: registry.config(trust: .anchors([authority.root.der])), clocks: clocks)
    let url = try #require(URL(string: "https://localhost:\(server.port)/"))
    do {
      _ = try await client.createPinnedSession().data(from: url)
      #expect(isServed)
    } catch {
      #expect(!isServed)
      #expect(client.refusal(for: error)?.rule == "chain")
    }
  }

  @Test(
    "fetches its registry by that clock as well",
    arguments: [(-400, false), (0, true), (400, false)])
  func fetches(days: Int64, isFetched: Bool) async throws {
    let document = try TestRegistry.document([
      .object([
        "domainName": .string("localhost"),
        "key": .string(try SPKIPin(certificateDER: identity.leaf.der).base64),
      ])
    ])
    let secure = try LocalTLSServer(identity: identity) { _ in HTTPResponse(body: document) }
    var config = try registry.config(trust: .anchors([authority.root.der]))
    config.endpointUrl = "https://localhost:\(secure.port)/test.json"
    let clocks = Clocks(
      wall: { Clocks.system.wall() + days * 86_400 }, steady: { 1000 }, longestRefresh: 60)
    do throws(SslPinningError) {
      _ = try await SslPinningClient(config: config, clocks: clocks)
      #expect(isFetched)
    } catch {
      #expect(!isFetched)
      guard days < 0 else {
        guard case .unreachable = error else {
          _ = Issue.record("\(error)")
          return
        }
        return
      }
      // Whoever starts for the first time is told what is most likely wrong.
      guard case .clockBehind = error else {
        _ = Issue.record("\(error)")
        return
      }
      #expect("\(error)".contains("clock is the likely cause"))
    }
  }
}
