import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("A listener with TLS", .timeLimit(.minutes(2))) struct HTTPListenerTLSTests {
  private let authority: CertificateAuthority
  private let folder: TemporaryDirectory

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Listener Root")
    folder = try TemporaryDirectory()
    try folder.write(authority.certificate.pem, to: "root.pem")
  }

  private func identity(_ algorithm: PrivateKey.Algorithm = .p256) throws -> ListenerIdentity {
    let made = try authority.issueIntermediate(name: "Listener CA", key: .generate(.p256))
      .issue(names: ["site.test"], algorithm: algorithm)
    return try ListenerIdentity(certificatePEM: made.certificateChainPEM, keyPEM: made.keyPEM)
  }

  private func arguments(_ server: HTTPServer, _ path: String, _ extra: [String]) -> [String] {
    let port = server.address.port
    return [
      "-sS", "--max-time", "30", "--noproxy", "*", "--cacert", folder.path("root.pem"),
      "--resolve", "site.test:\(port):127.0.0.1",
    ] + extra + ["https://site.test:\(port)\(path)"]
  }

  private func curl(
    _ server: HTTPServer, _ path: String, _ extra: [String] = []
  ) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run("curl", arguments(server, path, extra))
  }

  private func leaf(_ server: HTTPServer) async throws -> ProbedServer {
    let probe = try TLSProbe(anchors: try ChainValidator(anchors: [authority.root]))
    return try await probe.probe(
      try ProbeTarget(
        host: "site.test", port: server.address.port,
        connectTo: [.loopback(server.address.port)]))
  }

  @Test(
    "serves requests, bodies and late answers over TLS 1.2 and 1.3",
    arguments: ["1.2", "1.3"], [PrivateKey.Algorithm.p256, .rsa(bits: 2048)])
  func serves(_ version: String, _ algorithm: PrivateKey.Algorithm) async throws {
    let server = try HTTPBench.start(tls: identity(algorithm))
    let only = ["--tlsv\(version)", "--tls-max", version]
    #expect(try await curl(server, "/ok", only).stdout == "ok")
    #expect(try await curl(server, "/late", only).stdout == "late")
    let body = repeated("0123456789abcdef", 1 << 14)
    try folder.write(body, to: "body")
    let sent = try await curl(
      server, "/large", only + ["--data-binary", "@\(folder.path("body"))"])
    #expect(sent.stdout == body)
    let chunked = try await curl(
      server, "/large",
      only + ["-H", "Transfer-Encoding: chunked", "--data-binary", "@\(folder.path("body"))"])
    #expect(chunked.stdout == body)
    await server.stop()
  }

  @Test("shows its whole chain")
  func chain() async throws {
    let server = try HTTPBench.start(tls: identity())
    let seen = try await leaf(server)
    #expect(seen.isTrusted && seen.presented.count == 2 && seen.tlsVersion == "TLSv1.3")
    await server.stop()
  }

  @Test("speaks no TLS before 1.2, and no clear text")
  func refuses() async throws {
    let server = try HTTPBench.start(tls: identity())
    let old = try await curl(
      server, "/ok", ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"])
    #expect(old.exitCode == 35, "\(old)")
    let clear = try await RawConnection.ask(
      server.address, "GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(!clear.contains("HTTP/1.1 "))
    #expect(try await curl(server, "/ok").stdout == "ok")
    await server.stop()
  }

  @Test("makes no key over a finite field or P-521, which cost many times what other curves do")
  func costlyGroups() async throws {
    let server = try HTTPBench.start(tls: identity(.rsa(bits: 2048)))
    for curve in ["X25519", "P-256", "P-384"] {
      #expect(try await curl(server, "/ok", ["--curves", curve]).stdout == "ok")
    }
    for costly in ["ffdhe2048", "P-521"] {
      #expect(try await curl(server, "/ok", ["--curves", costly]).exitCode == 35)
    }
    let old = ["--tls-max", "1.2", "--ciphers", "DHE-RSA-AES128-GCM-SHA256"]
    #expect(try await curl(server, "/ok", old).exitCode == 35)
    await server.stop()
  }

  @Test("a handshake that does not come is cut")
  func handshake() async throws {
    var limits = HTTPLimits()
    limits.header = .milliseconds(300)
    let server = try HTTPBench.start(limits, tls: identity())
    let client = try RawConnection(server.address)
    client.send([0x16, 0x03, 0x01])
    #expect(try await client.readToEnd()?.contains("HTTP") == false)
    #expect(await eventually { server.openConnections == 0 })
    await server.stop()
  }

  @Test("hostile requests are refused over TLS as well")
  func hostile() async throws {
    let server = try HTTPBench.start(tls: identity())
    let port = server.address.port
    for (lines, status) in [
      ("Content-Length: 0\r\nContent-Length: 1\r\n", "HTTP/1.1 400 "),
      ("X : y\r\n", "HTTP/1.1 400 "),
      ("X: a\nY: b\r\n", "HTTP/1.1 400 "), ("Content-Length: abc\r\n", "HTTP/1.1 400 "),
    ] {
      let client = try await ChildProcess.run(
        "openssl", ["s_client", "-quiet", "-connect", "127.0.0.1:\(port)"],
        input: Array("GET /ok HTTP/1.1\r\nHost: x\r\n\(lines)\r\n".utf8))
      #expect(client.stdout.hasPrefix(status), "\(client)")
    }
    await server.stop()
  }

  @Test("a new certificate is shown to new connections, and no old one is dropped")
  func reload() async throws {
    let gate = Gate()
    let server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), tls: identity(),
      routing: { _, _ in .noBody },
      handler: { request in
        guard request.path == "/wait" else { return .now(HTTPBench.text("ok")) }
        return .later {
          await gate.wait()
          return HTTPBench.text("opened")
        }
      })
    let before = try await leaf(server)
    let waiting = try ChildProcess("curl", arguments(server, "/wait", ["-i"]))
    #expect(await eventually { server.suspendedConnections == 1 })
    try server.reload(identity())
    let after = try await leaf(server)
    #expect(after.isTrusted && after.leaf != before.leaf)
    #expect(try await curl(server, "/ok").stdout == "ok")
    gate.open()
    let answer = try await waiting.wait().stdout
    #expect(answer.hasSuffix("opened") && answer.contains("Connection: close\r\n"))
    #expect(await eventually { server.openConnections == 0 })
    // Again, when the first daemon has been put away.
    try server.reload(identity())
    #expect(try await leaf(server).leaf != after.leaf)
    await server.stop()
    #expect(server.openConnections == 0)
  }

  @Test("a stop right after a reload serves what both have")
  func stopAfterReload() async throws {
    let server = try HTTPBench.start(tls: identity())
    let first = try ChildProcess("curl", arguments(server, "/wait", []))
    #expect(await eventually { server.suspendedConnections == 1 })
    try server.reload(identity())
    let second = try ChildProcess("curl", arguments(server, "/wait", []))
    #expect(await eventually { server.suspendedConnections == 2 })
    await server.stop()
    #expect(try await first.wait().stdout == "cancelled")
    #expect(try await second.wait().stdout == "cancelled")
  }

  @Test("is configured with both files or with none")
  func configured() throws {
    let made = try identity()
    let certificate = try folder.write(made.certificatePEM, to: "c.pem").path
    let key = try folder.write(made.keyPEM, to: "c.key").path
    var configuration = HTTPConfiguration()
    #expect(try configuration.listenerIdentity()?.keyPEM == nil)
    configuration.certificate = certificate
    #expect(throws: HTTPServerError.self) { try configuration.listenerIdentity() }
    configuration.privateKey = key
    #expect(try configuration.listenerIdentity()?.certificatePEM == made.certificatePEM)
    configuration.certificate = nil
    #expect(throws: HTTPServerError.self) { try configuration.listenerIdentity() }
  }

  @Test("files that do not belong together are refused with the reason")
  func mismatched() async throws {
    let (one, other) = (try identity(), try identity())
    let certificate = try folder.write(one.certificatePEM, to: "a.pem").path
    let key = try folder.write(other.keyPEM, to: "b.key").path
    let empty = try folder.write("", to: "empty").path
    for (certificate, key) in [
      (certificate, key), (empty, key), (certificate, empty), (key, certificate),
      (folder.path("none"), key), (certificate, folder.path("none")), (folder.path(), key),
    ] {
      #expect { try ListenerIdentity(certificateFile: certificate, keyFile: key) } throws: {
        guard case HTTPServerError.certificate(let reason)? = $0 as? HTTPServerError else {
          return false
        }
        return !reason.isEmpty && !reason.contains("PRIVATE KEY-----\n")
      }
    }
    #expect(throws: Never.self) {
      try ListenerIdentity(
        certificateFile: certificate, keyFile: folder.write(one.keyPEM, to: "a.key").path)
    }
  }

  @Test(
    "it ends with the first of its certificates, and not with a cross-signed root above them",
    arguments: [(40, 50, 30, 40), (50, 40, 60, 40)])
  func end(_ leaf: Int, _ issuer: Int, _ above: Int, _ end: Int) throws {
    func lasting(_ days: Int) -> Validity { .days(days, from: 1_800_000_000) }
    let made =
      try authority
      .issueIntermediate(name: "Cross-signed Root", validity: lasting(above))
      .issueIntermediate(name: "Listener CA", validity: lasting(issuer))
      .issue(names: ["site.test"], validity: lasting(leaf))
    let listener = try ListenerIdentity(
      certificatePEM: made.certificateChainPEM, keyPEM: made.keyPEM)
    #expect(listener.ends == lasting(end).notAfter)
  }
}
