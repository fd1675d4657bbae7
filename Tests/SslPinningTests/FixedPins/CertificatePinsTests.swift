import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A client of bundled certificates")
struct CertificatePinsTests {
  private let site: FixedPinsSite

  init() throws { site = try FixedPinsSite() }

  /// Every certificate on the path, by its place there.
  private var path: [Data] {
    [site.identity.leaf.der, site.authority.certificate.der, site.root.root.der].map { Data($0) }
  }

  private func client(
    _ certificates: [Data], _ part: FixedPins.CertificatePart, hosts: [String] = ["localhost"]
  ) throws -> FixedPinsClient {
    try FixedPinsClient(
      pins: .certificates(certificates, pinning: part, hosts: hosts, trust: site.trust))
  }

  @Test(
    "finds the certificate wherever it stands on the path",
    arguments: [FixedPins.CertificatePart.publicKey, .wholeCertificate], 0..<3)
  func anywhere(part: FixedPins.CertificatePart, index: Int) async throws {
    let client = try client([path[index]], part)
    #expect(try await site.get(client) == .served)
    #expect(try await site.get(client, host: "a.localhost") == .refused(.unlisted))
  }

  @Test("of a key alone outlives a renewal; of the whole certificate it does not")
  func renewal() async throws {
    let byKey = try client([path[0]], .publicKey)
    let whole = try client([path[0]], .wholeCertificate)
    let renewed = try site.authority.issue(names: FixedPinsSite.names, key: site.identity.key)
    #expect(renewed.leaf.der != site.identity.leaf.der)
    try site.server.replaceIdentity(renewed, closingConnections: true)
    #expect(try await site.get(byKey) == .served)
    #expect(try await site.get(whole) == .refused(.mismatch(.certificate)))
    let both = try client([path[0], Data(renewed.leaf.der)], .wholeCertificate)
    #expect(try await site.get(both) == .served)
  }

  @Test(
    "refuses another certificate of the same CA",
    arguments: [FixedPins.CertificatePart.publicKey, .wholeCertificate])
  func otherCertificate(part: FixedPins.CertificatePart) async throws {
    let client = try client([path[0]], part)
    let attacker = try LocalTLSServer(identity: site.authority.issue(names: FixedPinsSite.names)) {
      _ in .text("read by the attacker")
    }
    guard case .refused(.mismatch) = try await site.get(client, port: attacker.port) else {
      Issue.record("not refused")
      return
    }
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  @Test("never loosens: a bundled certificate is trusted as an anchor only where it is asked for")
  func neverLoosens() async throws {
    for part in [FixedPins.CertificatePart.publicKey, .wholeCertificate] {
      let pins = try FixedPins.certificates(path, pinning: part, hosts: ["localhost"])
      guard case .refused(.chainRejected) = try await site.get(FixedPinsClient(pins: pins)) else {
        Issue.record("the system does not know this CA")
        return
      }
    }
  }

  @Test("trusts the own CA and no other", arguments: 0..<3)
  func anchors(index: Int) async throws {
    let client = try FixedPinsClient(pins: .anchors([path[index]], hosts: ["localhost"]))
    #expect(try await site.get(client) == .served)
    #expect(try await site.get(client, host: "a.localhost") == .refused(.unlisted))
    let stranger = try CertificateAuthority.makeRoot(name: "Fixed pins root")
    let attacker = try LocalTLSServer(identity: stranger.issue(names: FixedPinsSite.names)) { _ in
      .text("read by the attacker")
    }
    guard
      case .refused(.chainRejected(.untrusted)) = try await site.get(client, port: attacker.port)
    else {
      Issue.record("not refused")
      return
    }
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  @Test("under the own CA checks names as ever")
  func names() async throws {
    let client = try FixedPinsClient(pins: .anchors([path[2]], hosts: ["**.localhost"]))
    let other = try LocalTLSServer(identity: site.authority.issue(names: ["a.localhost"])) { _ in
      .text("hello")
    }
    #expect(try await site.get(client, host: "a.localhost", port: other.port) == .served)
    #expect(
      try await site.get(client, port: other.port) == .refused(.chainRejected(.wrongHost)))
  }

  @Test("trusts a server's self-signed certificate, and no other of that name")
  func selfSigned() async throws {
    let own = try ServerIdentity.selfSigned(names: ["localhost"])
    let server = try LocalTLSServer(identity: own) { _ in .text("hello") }
    let client = try FixedPinsClient(pins: .anchors([Data(own.leaf.der)], hosts: ["localhost"]))
    #expect(try await site.get(client, port: server.port) == .served)
    try server.replaceIdentity(
      ServerIdentity.selfSigned(names: ["localhost"]), closingConnections: true)
    guard case .refused(.chainRejected) = try await site.get(client, port: server.port) else {
      Issue.record("not refused")
      return
    }
  }

  @Test("reads the files of a bundle, DER and PEM, and none with all public CAs for pins")
  func bundle() throws {
    let directory = try TemporaryDirectory()
    let bundle = try #require(Bundle(path: directory.path()))
    #expect(throws: FixedPinsError.noCertificateFile(bundle: bundle.bundlePath)) {
      try BundledCertificates.read(in: bundle)
    }
    try directory.write(site.identity.leaf.der, to: "b.cer")
    // The same twice counts once.
    try directory.write(site.root.root.pem + site.root.root.pem, to: "a.PEM")
    try directory.write("hello", to: "c.txt")
    #expect(
      try BundledCertificates.read(in: bundle)
        == [path[2], path[0]])
    let several = try directory.write(
      site.root.root.pem + site.authority.certificate.pem, to: "cacert.pem")
    #expect(throws: FixedPinsError.severalCertificates(name: "cacert.pem", count: 2)) {
      try BundledCertificates.read(in: bundle)
    }
    #expect(try BundledCertificates.read(files: [several]) == [path[2], path[1]])
    try directory.write("hello", to: "c.crt")
    #expect(throws: FixedPinsError.badCertificateFile(name: "c.crt", .noCertificate)) {
      try BundledCertificates.read(in: bundle)
    }
  }

  @Test("is not to be had without certificates or hosts")
  func nothing() throws {
    let der = path[0]
    for part in [FixedPins.CertificatePart.publicKey, .wholeCertificate] {
      #expect(throws: FixedPinsError.noPins(host: nil)) {
        try FixedPins.certificates([], pinning: part, hosts: ["localhost"])
      }
      #expect(throws: FixedPinsError.noPins(host: nil)) {
        try FixedPins.certificates([der], pinning: part, hosts: [])
      }
      #expect(throws: FixedPinsError.self) {
        try FixedPins.certificates([der, der + [0]], pinning: part, hosts: ["localhost"])
      }
    }
    #expect(throws: FixedPinsError.noPins(host: nil)) {
      try FixedPins.anchors([], hosts: ["localhost"])
    }
  }
}
