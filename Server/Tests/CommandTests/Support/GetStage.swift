import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// A listed server behind a private CA, and the three files that `get` needs.
struct GetStage {
  let directory: TemporaryDirectory
  let authority: CertificateAuthority
  let identity: ServerIdentity
  let server: LocalTLSServer

  /// - Parameter listed: the hosts in the registry; all lead to the server, whose certificate is
  ///   good for them and for `unlisted.localhost`.
  init(
    listed: [String] = ["localhost", "127.0.0.1"],
    handler: @escaping LocalHTTPServer.Handler = { _ in .text("hello\n") }
  ) throws {
    directory = try TemporaryDirectory()
    authority = try CertificateAuthority.makeRoot(name: "Root")
      .issueIntermediate(name: "Intermediate")
    identity = try authority.issue(names: ["localhost", "127.0.0.1", "unlisted.localhost"])
    server = try LocalTLSServer(identity: identity, handler: handler)
    try directory.write(authority.root.pem, to: "ca.pem")
    try directory.write(Keys.signing.get().publicKeyPEM, to: "pub.pem")
    try publish(listed.map { Keys.entry($0, try pin) })
  }

  /// The server's pin.
  var pin: String { get throws { try SPKIPin(certificateDER: identity.leaf.der).base64 } }

  var registry: String { directory.path("registry.json") }

  func publish(_ entries: [JSONValue]) throws {
    try directory.write(Keys.document(entries), to: "registry.json")
  }

  func url(_ path: String = "/", host: String = "localhost") -> String {
    "https://\(host):\(server.port)\(path)"
  }

  /// Gets a URL with the stage's registry and key.
  ///
  /// - Parameters:
  ///   - registry: another registry, file or URL.
  ///   - trust: the flags that choose whom to trust; the private CA by default.
  func get(
    _ url: String, registry: String? = nil, trust: [String]? = nil, _ flags: [String] = [],
    environment: [String: String] = [:], seconds: Double = 60
  ) async throws -> ChildProcess.Outcome {
    let trust = trust ?? ["--ca", directory.path("ca.pem")]
    return try await Tool.run(
      ["get", url, "--registry", registry ?? self.registry, "--key", directory.path("pub.pem")]
        + trust + flags, environment: environment, seconds: seconds)
  }
}

extension ChildProcess.Outcome {
  /// The rule of the verdict on standard error.
  var rule: String? {
    stderr.split(separator: "\n").compactMap { line -> String? in
      let words = line.split(separator: " ")
      return words.first == "rule" ? words.last.map(String.init) : nil
    }.first
  }
}
