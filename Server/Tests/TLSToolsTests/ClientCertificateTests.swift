import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import TLSTools

/// Servers that ask for a client certificate: what of them is proved although there is none, and what is not.
@Suite("TLS probe: servers that ask for a client certificate", .timeLimit(.minutes(2)))
struct ClientCertificateTests {
  private let authority: CertificateAuthority
  private let probe: TLSProbe

  init() throws {
    authority = try .makeRoot(name: "Mutual Root")
    probe = try TLSProbe(anchors: ChainValidator(anchors: [authority.root]))
  }

  private func target(_ port: UInt16) throws -> ProbeTarget {
    try ProbeTarget(host: "site.test", connectTo: [.loopback(port)])
  }

  /// Starts `openssl s_server`, which ends a handshake without a client certificate.
  private func serve(_ identity: ServerIdentity, _ flags: String) async throws
    -> (server: ChildProcess, port: UInt16, files: TemporaryDirectory)
  {
    let files = try TemporaryDirectory()
    try files.write(identity.leaf.pem, to: "leaf.pem")
    try files.write(identity.key.pem, to: "leaf.key")
    try files.write(authority.root.pem, to: "ca.pem")
    let port = try freePort()
    let server = try ChildProcess(
      "openssl",
      [
        "s_server", "-accept", "\(port)", "-cert", "leaf.pem", "-key", "leaf.key", "-CAfile",
        "ca.pem",
        "-Verify", "1", "-verify_return_error", "-quiet",
      ] + flags.split(separator: " ").map(String.init), directory: files.url)
    #expect(await eventually { (try? RawClient(port: port)) != nil })
    return (server, port, files)
  }

  @Test(
    "one that signs its key exchange is seen before it refuses",
    arguments: [
      ("-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256", PrivateKey.Algorithm.p256),
      ("-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256", .rsa(bits: 2048)),
      ("-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256", .rsa(bits: 2048)),
      ("-tls1_1 -cipher ECDHE-RSA-AES128-SHA:@SECLEVEL=0", .rsa(bits: 2048)),
      ("-tls1 -cipher ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0", .p256), ("-tls1_3", .p256),
    ])
  func seen(flags: String, algorithm: PrivateKey.Algorithm) async throws {
    let identity = try authority.issue(names: ["site.test"], algorithm: algorithm)
    let (server, port, _) = try await serve(identity, flags)
    let result = try await probe.probe(target(port))
    #expect(result.isTrusted)
    #expect(result.leaf.certificate == identity.leaf)
    // One whose key exchange is signed is seen as well if it takes another certificate than the one that it gets.
    let stranger = try CertificateAuthority.makeRoot(name: "Nobody's").issue(names: ["probe.test"])
    #expect(try await self.probe(as: stranger).probe(target(port)).isTrusted)
    try await server.terminate()
  }

  @Test(
    "nginx, which lets the handshake end and answers 400",
    arguments: [
      ("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256", "on"), ("TLSv1.2", "AES128-GCM-SHA256", "on"),
      ("TLSv1.3", "DEFAULT", "on"), ("TLSv1.2", "AES128-GCM-SHA256", "optional"),
    ])
  func nginx(protocols: String, ciphers: String, verify: String) async throws {
    let identity = try authority.issue(names: ["site.test"], algorithm: .rsa(bits: 2048))
    let nginx = try await Nginx.start(
      Nginx.Site(
        identity, http2: false, protocols: protocols,
        directives: """
          ssl_ciphers \(ciphers); ssl_verify_client \(verify); ssl_client_certificate ca.pem; return 204;
          """), files: ["ca.pem": authority.root.pem])
    #expect(try await probe.probe(target(nginx.port)).isTrusted)
    try await nginx.stop()
  }

  @Test(
    "up to TLS 1.2 one that refuses has proved its key and no chain: the handshake counts as not finished",
    arguments: [("-tls1_2", false), ("-tls1_3", true)])
  func unfinished(flag: String, isFinished: Bool) async throws {
    let identity = try authority.issue(names: ["site.test"])
    let (server, port, _) = try await serve(identity, flag + " -purpose any")
    let known = try self.probe(as: authority.issue(names: ["probe.test"]))
    for (probe, isExpected) in [(probe, isFinished), (known, true)] {
      let findings = try await probe.survey(
        HostName("site.test"), port: port, addresses: [.loopback(port)], from: [.direct],
        asking: [], hurried: [:], limits: ProbeLimits(total: 60_000),
        trusting: ChainValidator(anchors: [authority.root]), cache: VerdictCache())
      #expect(findings.map(\.isFinished) == [isExpected])
      for finding in findings {
        guard case .success(.trusted) = finding.outcome else {
          Issue.record("\(finding.outcome)")
          continue
        }
      }
    }
    try await server.terminate()
  }

  private func probe(as identity: ServerIdentity) throws -> TLSProbe {
    try TLSProbe(
      anchors: ChainValidator(anchors: [authority.root]), resolver: NameResolver(), as: identity)
  }

  @Test("with plain RSA key exchange nothing is proved without a certificate that the server takes")
  func unsigned() async throws {
    let identity = try authority.issue(names: ["site.test"], algorithm: .rsa(bits: 2048))
    let (server, port, _) = try await serve(
      identity, "-tls1_2 -cipher AES128-GCM-SHA256:@SECLEVEL=0 -purpose any")
    await #expect(throws: ProbeError.self) { try await probe.probe(target(port)) }
    let stranger = try CertificateAuthority.makeRoot(name: "Nobody's").issue(names: ["probe.test"])
    await #expect(throws: ProbeError.self) {
      try await self.probe(as: stranger).probe(target(port))
    }
    for algorithm in [PrivateKey.Algorithm.p256, .rsa(bits: 2048)] {
      let known = try authority.issue(names: ["probe.test"], algorithm: algorithm)
      #expect(try await self.probe(as: known).probe(target(port)).isTrusted)
    }
    try await server.terminate()
  }

  /// How a middleman who has the certificate and not its key goes on with what the server once said.
  enum Replay: CaseIterable {
    /// The server's whole flight, with a signature over another client's random.
    case signed
    /// The same without the signed message.
    case stripped
    /// A flight of plain RSA key exchange, which has no such message.
    case rsa
  }

  @Test(
    "a middleman who replays a certificate and has no key is never seen, however he asks",
    arguments: Replay.allCases)
  func replayed(_ replay: Replay) async throws {
    let identity = try authority.issue(names: ["site.test"], algorithm: .rsa(bits: 2048))
    let suite: [UInt8] = replay == .rsa ? [0x00, 0x9c] : [0xc0, 0x2f]
    let (server, port, _) = try await serve(identity, "-tls1_2 -cipher ALL:@SECLEVEL=0")
    #expect(try await probe.probe(target(port)).isTrusted)
    var messages = try Self.flight(of: port, suite: suite)
    try await server.terminate()
    // Hello, certificate, the signed key exchange, the demand, and the end.
    #expect(messages.map { $0[0] } == (replay == .rsa ? [2, 11, 13, 14] : [2, 11, 12, 13, 14]))
    if replay == .stripped { messages.removeAll { $0[0] == 12 } }
    let refusal: [UInt8] = [0x15, 3, 3, 0, 2, 2, 40]
    let middleman = try LocalRawServer(.sends(Self.record(messages.flatMap { $0 }) + refusal))
    let replayed = try target(middleman.port)
    for probe in [probe, try self.probe(as: authority.issue(names: ["probe.test"]))] {
      do throws(ProbeError) {
        let result = try await probe.probe(replayed)
        Issue.record("\(result.leaf) was taken for proved")
      } catch {
        guard case .handshake = error else {
          Issue.record("\(error)")
          continue
        }
      }
    }
  }

  /// The messages with which a server answers the first one of a client that takes one suite (RFC 5246 section 7.4).
  private static func flight(of port: UInt16, suite: [UInt8]) throws -> [[UInt8]] {
    let extensions: [UInt8] =
      [0, 10, 0, 4, 0, 2, 0, 0x1d] + [0, 11, 0, 2, 1, 0] + [0, 13, 0, 6, 0, 4, 4, 1, 8, 4]
      + [0xff, 1, 0, 1, 0]
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + [0, 2] + suite + [1, 0]
      + [0, UInt8(extensions.count)] + extensions
    let client = try RawClient(port: port)
    try client.send(record([1, 0, 0, UInt8(body.count)] + body))
    var (bytes, messages) = ([UInt8](), [[UInt8]]())
    while messages.last?.first != 14 {
      let head = try client.read(count: 5)
      bytes += try client.read(count: Int(head[3]) << 8 | Int(head[4]))
      while bytes.count >= 4, case let length = 4 + Int(bytes[2]) << 8 + Int(bytes[3]),
        bytes.count >= length
      {
        messages.append(Array(bytes.prefix(length)))
        bytes.removeFirst(length)
      }
    }
    return messages
  }

  private static func record(_ bytes: [UInt8]) -> [UInt8] {
    [0x16, 3, 3, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes
  }
}
