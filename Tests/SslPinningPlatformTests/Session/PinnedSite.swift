import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A private CA, a TLS server for `localhost`, its subdomains and 127.0.0.1, and a pinned transport
/// that trusts the CA and pins the server.
struct PinnedSite {
  /// Spelled out: no validator takes `*.localhost`, a wildcard right above the root.
  static let names =
    ["localhost", "a.localhost", "b.localhost", "127.0.0.1"] + (0..<40).map { "h\($0).localhost" }

  let authority: CertificateAuthority
  let identity: ServerIdentity
  let server: LocalTLSServer
  let judge: ScriptedJudge
  let transport: PinnedTransport

  init(
    trust: TrustMode? = nil, longestRefresh: Double = 60,
    handler: @escaping LocalHTTPServer.Handler = { _ in .text("hello") }
  ) throws {
    authority = try CertificateAuthority.makeRoot(name: "Test root")
      .issueIntermediate(name: "Test intermediate")
    identity = try authority.issue(names: Self.names)
    server = try LocalTLSServer(identity: identity, handler: handler)
    let trust = trust ?? .anchors([authority.root.der])
    judge = try ScriptedJudge(["**.localhost": identity, "127.0.0.1": identity], trust: trust)
    transport = try PinnedTransport(
      trust: trust, judge: judge, longestRefresh: longestRefresh)
  }

  func url(_ path: String = "/", host: String = "localhost", port: UInt16? = nil) throws -> URL {
    guard let url = URL(string: "https://\(host):\(port ?? server.port)\(path)") else {
      throw NoURL()
    }
    return url
  }

  func session(
    _ configuration: URLSessionConfiguration = .ephemeral,
    delegate: (any URLSessionDelegate)? = nil
  ) -> URLSession {
    transport.makeSession(configuration: configuration, delegate: delegate)
  }

  /// A key that nobody pins, under the same CA: what a man in the middle shows whom the CA serves.
  func rogueIdentity() throws -> ServerIdentity { try authority.issue(names: Self.names) }

  /// The refusal that a request ends with; `nil` where it is served or fails otherwise.
  func refusal(
    of url: URL, over session: URLSession
  ) async -> PinEvaluation? {
    await refusal(of: URLRequest(url: url), over: session)
  }

  func refusal(
    of request: URLRequest, over session: URLSession
  ) async -> PinEvaluation? {
    do {
      _ = try await session.data(for: request)
      return nil
    } catch {
      return transport.refusal(for: error)
    }
  }
}

struct NoURL: Error {}
