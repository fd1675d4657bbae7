import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("The system's anchors")
struct ValidationSystemTests {
  private static let realSite = "online::stackoverflow.com"

  private func evidence(
    _ trust: TrustMode, _ system: SystemAnchors, chain: [Certificate], host: HostName = .example
  ) throws -> ChainEvidence {
    try ChainValidator(trust: trust, system: system)
      .evidence(presented: chain.map(\.der), host: host)
  }

  @Test("accepts the chain of a real site, and not the same site under a private CA")
  func realSystem() throws {
    let site = try #require(try LimboCase.all().first { $0.id == Self.realSite })
    let host = try HostName(try #require(site.expectedPeerName).value)
    let system = try ChainValidator(trust: .system)
    let evidence = system.evidence(
      presented: try site.presented, host: host, at: site.unixSeconds)
    #expect(try evidence.validation.get().path.count >= 2)
    // The certificate was valid at the time of the vector and is not for ever.
    #expect(
      system.evidence(presented: try site.presented, host: host, at: 4_000_000_000).isUntrusted)
    let authority = try CertificateAuthority.makeRoot(name: "Private")
    let own = try authority.issue(names: [host.description])
    #expect(system.evidence(presented: [own.leaf.der], host: host).isUntrusted)
    for (andSystem, trusted) in [(true, true), (false, false)] {
      let validator = try ChainValidator(
        trust: .anchors([authority.certificate.der], andSystem: andSystem))
      #expect(validator.evidence(presented: [own.leaf.der], host: host).isUntrusted == false)
      let site = validator.evidence(
        presented: try site.presented, host: host, at: site.unixSeconds)
      #expect(site.isUntrusted != trusted)
    }
  }

  @Test("reads the file and the directories that the environment names, and nothing beside them")
  func environment() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Installed")
    let leaf = try authority.issue(names: ["www.example.com"]).leaf
    let other = try CertificateAuthority.makeRoot(name: "Other")
      .issue(names: ["www.example.com"]).leaf
    let folder = try TemporaryDirectory()
    let file = try folder.write(authority.certificate.pem, to: "bundle.pem")
      .path(percentEncoded: false)
    let hashed = try TemporaryDirectory()
    _ = try hashed.write(authority.certificate.pem, to: "root.pem")
    let rehash = try await ChildProcess.run("openssl", ["rehash", hashed.path()])
    try #require(rehash.exitCode == 0)
    let empty = try TemporaryDirectory()
    let bundles = SystemAnchors(environment: [:]).bundles
    #expect(bundles == SystemAnchors.knownBundles)
    for environment in [
      ["SSL_CERT_FILE": file, "SSL_CERT_DIR": empty.path()],
      ["SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": hashed.path()],
      ["SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": empty.path() + ":" + hashed.path()],
    ] {
      let system = SystemAnchors(environment: environment)
      #expect(system.bundles.isEmpty)
      #expect(try evidence(.system, system, chain: [leaf]).isUntrusted == false)
      #expect(try evidence(.system, system, chain: [other]).isUntrusted)
      #expect(try evidence(.anchors([]), system, chain: [leaf]).isUntrusted)
      #expect(
        try evidence(.anchors([], andSystem: true), system, chain: [leaf]).isUntrusted == false)
    }
  }

  @Test("says where it searched when a system has no anchors")
  func none() throws {
    let empty = try TemporaryDirectory()
    _ = try empty.write("no certificate", to: "readme.0")
    let system = SystemAnchors(
      environment: ["SSL_CERT_FILE": empty.path("missing.pem"), "SSL_CERT_DIR": empty.path()])
    #expect(
      throws: TrustError.noSystemAnchors(searched: [empty.path("missing.pem"), empty.path()])
    ) { try ChainValidator(trust: .system, system: system) }
    // One's own anchors are enough to go on with.
    let authority = try CertificateAuthority.makeRoot(name: "Own")
    let leaf = try authority.issue(names: ["www.example.com"]).leaf
    let own = TrustMode.anchors([authority.certificate.der], andSystem: true)
    #expect(try evidence(own, system, chain: [leaf]).isUntrusted == false)
  }
}
