import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// The probe reads certificates in a library context of few algorithms: this is what it must not lack.
@Suite("TLS probe: every kind of handshake that OpenSSL offers by itself")
struct ProbeSuitesTests {
  private let authority: CertificateAuthority
  private let probe: TLSProbe

  init() throws {
    authority = try .makeRoot(name: "Suites Root")
    probe = try TLSProbe(anchors: ChainValidator(anchors: [authority.root]))
  }

  @Test("a server that insists on one suite of TLS 1.2 and below")
  func suites() async throws {
    let list = try await ChildProcess.run("openssl", ["ciphers", "-v"]).stdout
    let suites = list.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      .filter { line in
        line.count > 3 && line[1] != "TLSv1.3" && !line[0].contains("PSK")
          && !line[0].contains("SRP")
      }
      .map { (name: $0[0], isECDSA: $0[3] == "Au=ECDSA") }
    try #require(suites.count >= 24)
    let ecdsa = try authority.issue(names: ["site.test"])
    let rsa = try authority.issue(names: ["site.test"], algorithm: .rsa(bits: 2048))
    let nginx = try await Nginx.start(
      suites.map { suite in
        Nginx.Site(
          suite.isECDSA ? ecdsa : rsa, http2: false, protocols: "TLSv1 TLSv1.1 TLSv1.2",
          directives: """
            ssl_ciphers \(suite.name):@SECLEVEL=0; ssl_dhparam dh.pem; return 204;
            """)
      }, files: ["dh.pem": Self.group14])
    for (suite, port) in zip(suites, nginx.ports) {
      let result = try await probe.probe(
        ProbeTarget(host: "site.test", connectTo: [.loopback(port)]))
      #expect(result.cipher == suite.name)
      #expect(result.isTrusted)
    }
    try await nginx.stop()
  }

  @Test("a server that insists on one suite of TLS 1.3")
  func suites13() async throws {
    let identity = try authority.issue(names: ["site.test"])
    let names = [
      "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    ]
    let nginx = try await Nginx.start(
      names.map {
        Nginx.Site(
          identity, protocols: "TLSv1.3",
          directives: "ssl_conf_command Ciphersuites \($0); return 204;")
      })
    for (name, port) in zip(names, nginx.ports) {
      let result = try await probe.probe(
        ProbeTarget(host: "site.test", connectTo: [.loopback(port)]))
      #expect(result.cipher == name)
      #expect(result.isTrusted)
    }
    try await nginx.stop()
  }

  @Test("a server that insists on one group of key exchange")
  func groups() async throws {
    let identity = try authority.issue(names: ["site.test"])
    let names = ["X25519", "prime256v1", "secp384r1", "secp521r1", "X448"]
    let nginx = try await Nginx.start(
      names.map { Nginx.Site(identity, directives: "ssl_ecdh_curve \($0); return 204;") })
    for port in nginx.ports {
      let result = try await probe.probe(
        ProbeTarget(host: "site.test", connectTo: [.loopback(port)]))
      #expect(result.isTrusted)
    }
    try await nginx.stop()
  }

  @Test("a server that insists on a finite field of 8192 bits is refused: it costs too much")
  func costlyField() async throws {
    let identity = try authority.issue(names: ["site.test"], algorithm: .rsa(bits: 2048))
    let field = try await OpenSSLCommand().make(
      "dh.pem", ["genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe8192"])
    let nginx = try await Nginx.start(
      [
        Nginx.Site(
          identity, http2: false, protocols: "TLSv1.2",
          directives: """
            ssl_ciphers DHE-RSA-AES128-GCM-SHA256; ssl_dhparam dh.pem; return 204;
            """),
        Nginx.Site(
          identity, http2: false, protocols: "TLSv1.3",
          directives: "ssl_ecdh_curve ffdhe8192; return 204;"),
      ], files: ["dh.pem": String(decoding: field, as: UTF8.self)])
    for port in nginx.ports {
      await #expect(throws: ProbeError.self) {
        try await probe.probe(ProbeTarget(host: "site.test", connectTo: [.loopback(port)]))
      }
    }
    try await nginx.stop()
  }

  @Test(
    "a server's key of each kind",
    arguments: [
      "EC -pkeyopt ec_paramgen_curve:P-256", "EC -pkeyopt ec_paramgen_curve:P-384",
      "EC -pkeyopt ec_paramgen_curve:P-521", "RSA -pkeyopt rsa_keygen_bits:3072",
      "RSA-PSS -pkeyopt rsa_keygen_bits:2048", "ED25519", "ED448",
    ])
  func keys(algorithm: String) async throws {
    let command = try OpenSSLCommand()
    let pem = try await command.make(
      "key.pem", ["genpkey", "-algorithm"] + algorithm.split(separator: " ").map(String.init))
    let key = try PrivateKey(pem: String(decoding: pem, as: UTF8.self))
    let identity = try authority.issue(names: ["site.test"], key: key)
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let result = try await probe.probe(
      ProbeTarget(host: "site.test", connectTo: [.loopback(server.port)]))
    #expect(result.isTrusted)
    #expect(result.leaf.pin == (try SPKIPin(certificateDER: identity.leaf.der)))
  }

  /// The group of RFC 3526 section 3: making one takes minutes.
  private static let group14 = """
    -----BEGIN DH PARAMETERS-----
    MIIBCAKCAQEA///////////JD9qiIWjCNMTGYouA3BzRKQJOCIpnzHQCC76mOxOb
    IlFKCHmONATd75UZs806QxswKwpt8l8UN0/hNW1tUcJF5IW1dmJefsb0TELppjft
    awv/XLb0Brft7jhr+1qJn6WunyQRfEsf5kkoZlHs5Fs9wgB8uKFjvwWY2kg2HFXT
    mmkWP6j9JM9fg2VdI9yjrZYcYvNWIIVSu57VKQdwlpZtZww1Tkq8mATxdGwIyhgh
    fDKQXkYuNs474553LBgOhgObJ4Oi7Aeij7XFXfBvTFLJ3ivL9pVYFxg5lUl86pVq
    5RXSJhiY+gUQFXKOWoqsqmj//////////wIBAg==
    -----END DH PARAMETERS-----
    """
}
