import FaultLab
import Foundation
import FoundationNetworking
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A TLS server for `localhost` and some names below it, under root and intermediate of a CA of its
/// own, and requests to it over pinned sessions.
struct FixedPinsSite {
  static let names = ["localhost", "a.localhost", "b.a.localhost", "127.0.0.1"]

  let root: CertificateAuthority
  let authority: CertificateAuthority
  let identity: ServerIdentity
  let server: LocalTLSServer

  init() throws {
    root = try CertificateAuthority.makeRoot(name: "Fixed pins root")
    authority = try root.issueIntermediate(name: "Fixed pins intermediate")
    identity = try authority.issue(names: Self.names)
    server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
  }

  /// What takes the system's place in these tests.
  var trust: TrustMode { .anchors([root.root.der]) }

  /// The pin of each certificate on the valid path, by its place there.
  var leafPin: String { get throws { try SPKIPin(certificateDER: identity.leaf.der).base64 } }
  var intermediatePin: String {
    get throws { try SPKIPin(certificateDER: authority.certificate.der).base64 }
  }
  var rootPin: String { get throws { try SPKIPin(certificateDER: root.root.der).base64 } }

  /// How a request ends.
  enum End: Equatable {
    case served
    case refused(PinEvaluation.Outcome)
    /// No refusal: what the system said.
    case failed(String)
  }

  func get(
    _ client: FixedPinsClient, host: String = "localhost", port: UInt16? = nil
  ) async throws -> End {
    guard let url = URL(string: "https://\(host):\(port ?? server.port)/") else { throw NoURL() }
    do {
      let (data, _) = try await client.createPinnedSession().data(from: url)
      return data == Data("hello".utf8) ? .served : .failed("another answer")
    } catch {
      return client.refusal(for: error).map { .refused($0.outcome) } ?? .failed("\(error)")
    }
  }

  private struct NoURL: Error {}
}
