import FaultLab
import Foundation
import TLSTools
import TestSupport

/// An HTTPS server for `site.test` with an authority of its own, and clients that know the way.
struct TestSite: Sendable {
  let authority: CertificateAuthority
  let server: LocalTLSServer
  let directory: TemporaryDirectory

  init(
    options: TLSServerOptions = TLSServerOptions(),
    handler: @escaping LocalHTTPServer.Handler = { .text("\($0.method) \($0.target)") }
  ) throws {
    authority = try CertificateAuthority.makeRoot(name: "Site Root")
    let identity = try authority.issueIntermediate(name: "Site Intermediate")
      .issue(names: ["site.test"])
    server = try LocalTLSServer(identity: identity, options: options, handler: handler)
    directory = try TemporaryDirectory()
  }

  func url(_ path: String) -> String { "https://site.test:\(server.port)\(path)" }

  /// Runs curl as the one client everybody has.
  func curl(
    _ path: String, _ extra: [String] = [], trusting other: CertificateAuthority? = nil
  ) async throws -> ChildProcess.Outcome {
    let root = try directory.write((other ?? authority).root.pem, to: "\(UUID()).pem")
    return try await ChildProcess.run(
      "curl",
      [
        "-sS", "--max-time", "30", "--noproxy", "*", "--cacert", root.path, "--resolve",
        "site.test:\(server.port):127.0.0.1",
      ] + extra + [url(path)])
  }

  /// Runs `openssl s_client`, which sends one request that ends the connection.
  func openssl(_ arguments: [String]) async throws -> ChildProcess.Outcome {
    let root = try directory.write(authority.root.pem, to: "\(UUID()).pem")
    return try await ChildProcess.run(
      "openssl",
      [
        "s_client", "-connect", "127.0.0.1:\(server.port)", "-servername", "site.test", "-CAfile",
        root.path, "-verify_return_error",
      ] + arguments,
      input: Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8))
  }
}
