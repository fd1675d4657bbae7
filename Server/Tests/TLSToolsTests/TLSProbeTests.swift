import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("TLS probe: servers that answer")
struct TLSProbeTests {
  let root: CertificateAuthority
  let issuing: CertificateAuthority
  let probe: TLSProbe
  static let now = Int64(Date().timeIntervalSince1970)

  init() throws {
    root = try CertificateAuthority.makeRoot(name: "Probe Root")
    issuing = try root.issueIntermediate(name: "Probe Issuer")
    probe = try TLSProbe(anchors: ChainValidator(anchors: [root.root]))
  }

  private func serve(
    _ identity: ServerIdentity, options: TLSServerOptions = TLSServerOptions()
  ) throws -> LocalTLSServer {
    try LocalTLSServer(identity: identity, options: options) { _ in .text("never asked") }
  }

  private func look(
    at server: LocalTLSServer, as host: String = "site.test"
  ) async throws -> ProbedServer {
    try await probe.probe(
      ProbeTarget(host: host, port: 443, connectTo: [.loopback(server.port)]))
  }

  @Test(
    "a good server: both chains, every pin, version, cipher, address",
    arguments: [PrivateKey.Algorithm.p256, .rsa(bits: 2048)])
  func good(algorithm: PrivateKey.Algorithm) async throws {
    let identity = try issuing.issue(names: ["site.test"], algorithm: algorithm)
    let server = try serve(identity)
    let result = try await look(at: server)
    #expect(result.presented.map(\.certificate) == [identity.leaf, issuing.certificate])
    #expect(
      result.validated?.map(\.certificate) == [
        identity.leaf, issuing.certificate, root.certificate,
      ])
    let expected = try [identity.leaf, issuing.certificate, root.certificate].map {
      try SPKIPin(certificateDER: $0.der)
    }
    #expect(result.validated?.map(\.pin) == expected)
    #expect(result.leaf.pin == (try SPKIPin(subjectPublicKeyInfoDER: identity.leafSPKI)))
    #expect(result.isTrusted)
    #expect(result.complaint == nil)
    #expect(result.verification.code == 0)
    #expect(result.tlsVersion == "TLSv1.3")
    #expect(result.cipher.hasPrefix("TLS_"))
    #expect(result.address == .loopback(server.port))
    #expect(await server.waitUntilIdle())
    #expect(server.counts.handshakesCompleted == 1)
    #expect(server.counts.applicationBytesReceived == 0)
  }

  @Test("pins are what openssl computes")
  func pinMatchesOpenSSL() async throws {
    let identity = try issuing.issue(names: ["site.test"], algorithm: .rsa(bits: 3072))
    let result = try await look(at: serve(identity))
    let directory = try TemporaryDirectory()
    let key = try directory.write(identity.key.publicKeyPEM, to: "pub.pem").path
    let outcome = try await ChildProcess.run(
      "sh",
      ["-c", "openssl pkey -pubin -in \(key) -outform DER | openssl dgst -sha256 -binary | base64"])
    #expect(result.leaf.pin?.base64 == outcome.stdout.trimmingCharacters(in: .newlines))
  }

  enum Fault: String, CaseIterable {
    case expired, notYetValid, selfSigned, unknownRoot, missingIntermediate, weakKey
  }

  @Test("a server with a bad chain still shows it, and the reason", arguments: Fault.allCases)
  func badChains(fault: Fault) async throws {
    let names = ["site.test"]
    let (identity, reason): (ServerIdentity, String) =
      switch fault {
      case .expired:
        (
          try issuing.issue(
            names: names, validity: Validity(notBefore: 0, notAfter: Self.now - 60)),
          "certificate has expired"
        )
      case .notYetValid:
        (
          try issuing.issue(names: names, validity: .days(1, from: Self.now + 90_000)),
          "certificate is not yet valid"
        )
      case .selfSigned: (try .selfSigned(names: names), "self-signed certificate")
      case .unknownRoot:
        (
          try CertificateAuthority.makeRoot(name: "Other").issue(names: names),
          "unable to get local issuer certificate"
        )
      case .missingIntermediate:
        (
          try {
            let whole = try issuing.issue(names: names)
            return try ServerIdentity(certificates: [whole.leaf], key: whole.key)
          }(), "unable to get local issuer certificate"
        )
      case .weakKey:
        (
          try issuing.issue(names: names, algorithm: .rsa(bits: 1024)),
          "EE certificate key too weak"
        )
      }
    let server = try serve(
      identity, options: TLSServerOptions(minimum: fault == .weakKey ? .tls10 : .tls12))
    let result = try await look(at: server)
    #expect(result.presented.map(\.certificate) == [identity.leaf] + identity.intermediates)
    #expect(result.leaf.pin != nil)
    #expect(result.validated == nil)
    #expect(result.verification.code != 0)
    #expect(result.verification.reason == reason)
    #expect(result.nameMatches)
    #expect(!result.isTrusted)
    #expect(result.complaint == reason)
  }

  @Test(
    "the name is checked for itself",
    arguments: [
      (["site.test"], "site.test", true), (["site.test"], "SITE.test.", true),
      (["*.site.test"], "a.site.test", true), (["*.site.test"], "site.test", false),
      (["*.site.test"], "a.b.site.test", false), (["other.test"], "site.test", false),
      (["127.0.0.1"], "127.0.0.1", true), (["127.0.0.2"], "127.0.0.1", false),
      (["::1"], "0:0::1", true), (["site.test"], "127.0.0.1", false),
    ])
  func names(names: [String], host: String, matches: Bool) async throws {
    let server = try serve(try issuing.issue(names: names))
    let result = try await look(at: server, as: host)
    #expect(result.nameMatches == matches)
    #expect(result.isTrusted == matches)
    #expect(result.validated?.count == 3)
    #expect((result.complaint == nil) == matches)
  }

  @Test("an expired certificate for another name has both complaints")
  func twoFaults() async throws {
    let identity = try issuing.issue(
      names: ["other.test"], validity: Validity(notBefore: 0, notAfter: 60))
    let result = try await look(at: serve(identity))
    #expect(result.complaint == "certificate has expired, and it is not for site.test")
  }

  @Test("validity is judged at the time that is passed in")
  func time() async throws {
    let identity = try issuing.issue(names: ["site.test"], validity: .daysFromNow(30))
    let server = try serve(identity)
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)])
    #expect(try await probe.probe(target, at: Self.now).isTrusted)
    let later = try await probe.probe(target, at: Self.now + 31 * 86_400)
    #expect(later.verification.reason == "certificate has expired")
  }

  @Test("other anchors for one probe; none at all trusts nobody; an intermediate can be one")
  func anchors() async throws {
    let server = try serve(try issuing.issue(names: ["site.test"]))
    let target = try ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)])
    let other = try CertificateAuthority.makeRoot(name: "Other")
    let results = [
      try await probe.probe(target, trusting: ChainValidator(anchors: [])),
      try await probe.probe(target, trusting: ChainValidator(anchors: [other.root])),
      try await probe.probe(target, trusting: .system()),
      try await probe.probe(target, trusting: ChainValidator(anchors: [other.root, root.root])),
      try await probe.probe(
        target, trusting: ChainValidator(anchorsIn: Array((other.root.pem + root.root.pem).utf8))),
      try await probe.probe(target, trusting: ChainValidator(anchorsIn: root.root.der)),
      try await probe.probe(target, trusting: ChainValidator(anchors: [issuing.certificate])),
    ]
    #expect(results.map(\.isTrusted) == [false, false, false, true, true, true, true])
    #expect(results.last?.validated?.count == 2)
    for bad in [[], Array("nothing".utf8), [0x30, 0x03]] {
      #expect(throws: CertificateError.self) { try ChainValidator(anchorsIn: bad) }
    }
  }

  @Test("SNI is sent for names and never for addresses")
  func serverName() async throws {
    let authority = issuing
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(1), authority: authority, nameWithoutSNI: "no-name.test")
    for (host, expected) in [("site.test", "site.test"), ("127.0.0.1", "no-name.test")] {
      let result = try await probe.probe(
        ProbeTarget(host: host, connectTo: [.loopback(proxy.port)]))
      #expect(result.leaf.certificate.subject == "CN=\(expected)")
    }
  }

  @Test("TLS 1.2 only, and relics", arguments: [TLSVersion.tls12, .tls11, .tls10])
  func versions(version: TLSVersion) async throws {
    let server = try serve(
      try issuing.issue(names: ["site.test"]),
      options: TLSServerOptions(minimum: version, maximum: version))
    let result = try await look(at: server)
    let expected = version == .tls10 ? "TLSv1" : version.description
    #expect(result.tlsVersion == expected)
    #expect(result.isTrusted)
  }

  @Test("localhost needs no resolver, and a dead address is passed over")
  func addresses() async throws {
    let server = try serve(try issuing.issue(names: ["localhost", "a.localhost", "site.test"]))
    for host in ["localhost", "a.localhost"] {
      let result = try await probe.probe(ProbeTarget(host: host, port: server.port))
      #expect(result.isTrusted)
    }
    let closed = try freePort()
    let result = try await probe.probe(
      ProbeTarget(
        host: "site.test",
        connectTo: [.loopback(closed), Endpoint(address: "127.0.0.1", port: server.port)]))
    #expect(result.address == .loopback(server.port))
  }

  @Test("a rotated key shows at once")
  func rotation() async throws {
    let identity = try issuing.issue(names: ["site.test"])
    let server = try serve(identity)
    let before = try await look(at: server)
    try server.replaceIdentity(issuing.issue(names: ["site.test"], key: identity.key))
    let renewed = try await look(at: server)
    try server.replaceIdentity(issuing.issue(names: ["site.test"]))
    let rotated = try await look(at: server)
    #expect(renewed.leaf.certificate != before.leaf.certificate)
    #expect(renewed.leaf.pin == before.leaf.pin)
    #expect(rotated.leaf.pin != before.leaf.pin)
    #expect(rotated.isTrusted)
  }

  @Test("hundreds at once, good and silent ones mixed")
  func many() async throws {
    let server = try serve(try issuing.issue(names: ["site.test"]))
    let silent = try LocalRawServer(.silent)
    let probe = probe
    let good = try ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)])
    let bad = try ProbeTarget(host: "site.test", connectTo: [.loopback(silent.port)])
    let outcomes = await withTaskGroup(of: Bool?.self) { group in
      for index in 0..<200 {
        group.addTask {
          let isGood = index % 2 == 0
          do throws(ProbeError) {
            return try await probe.probe(
              isGood ? good : bad, milliseconds: isGood ? 60_000 : 300
            ).isTrusted
          } catch {
            if case .timeout = error { return nil }
            return false
          }
        }
      }
      return await group.reduce(into: [Bool?]()) { $0.append($1) }
    }
    #expect(outcomes.filter { $0 == true }.count == 100)
    #expect(outcomes.filter { $0 == nil }.count == 100)
  }
}
