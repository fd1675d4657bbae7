import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningRules
import SslPinningTesting
import TLSTools
import Testing

/// A server on a real socket, and what a scripted registry says of it.
struct LiveSite {
  let authority: CertificateAuthority
  let identity: ServerIdentity
  let server: LocalTLSServer
  let clock = TestClock()

  init(names: [String] = ["localhost", "a.localhost", "b.localhost"]) throws {
    authority = try CertificateAuthority.makeRoot(name: "Live test root")
    identity = try authority.issue(names: names)
    server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
  }

  var pin: String { get throws { try SPKIPin(certificateDER: identity.leaf.der).base64 } }

  static let otherPin = StrictBase64.encode([UInt8](repeating: 7, count: 32))

  func registry(_ host: String = "localhost") throws -> ScriptedRegistry {
    try ScriptedRegistry([host: [pin]], at: clock.now)
  }

  func client(
    _ registry: ScriptedRegistry, _ configure: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws -> SslPinningClient {
    try await registry.client(clock: clock) {
      $0.trust = .anchors([authority.root.der])
      configure(&$0)
    }
  }

  /// `nil` for a request that was served.
  func refusal(
    _ client: SslPinningClient, _ session: URLSession? = nil, host: String = "localhost"
  ) async throws -> PinEvaluation? {
    let url = try #require(URL(string: "https://\(host):\(server.port)/"))
    do {
      let body = try await (session ?? client.createPinnedSession()).data(from: url).0
      #expect(String(decoding: body, as: UTF8.self) == "hello")
      return nil
    } catch {
      let refusal: PinEvaluation? = client.refusal(for: error)
      #expect(refusal != nil, "\(error)")
      return refusal
    }
  }
}
