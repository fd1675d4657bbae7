import CanonicalJSON
import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What `check --backup` makes of files: the server has a certificate of an intermediate, of which a list demands a key.
@Suite("check --backup")
struct CheckBackupTests {
  private static let host = "api.example.com"

  private let directory: TemporaryDirectory
  private let root, now, next: CertificateAuthority
  private let current: ServerIdentity
  private let moment = Int64(Date().timeIntervalSince1970)

  init() throws {
    directory = try TemporaryDirectory()
    root = try CertificateAuthority.makeRoot(name: "Root")
    now = try root.issueIntermediate(name: "Now")
    next = try root.issueIntermediate(name: "Next")
    current = try now.issue(names: [Self.host])
    try directory.write(root.root.pem, to: "ca.pem")
    try directory.write(Self.whole(current), to: "chain.pem")
  }

  /// As a CA delivers it.
  private static func whole(_ identity: ServerIdentity) -> String {
    identity.leaf.pem + identity.intermediates.map(\.pem).joined()
  }

  private func pin(_ certificate: Certificate) throws -> String {
    try SPKIPin(certificateDER: certificate.der).base64
  }

  /// Writes a list with these keys of servers and of CAs.
  private func list(_ leaves: [ServerIdentity], ca authorities: [CertificateAuthority]) throws {
    try directory.write(
      CheckTests.apple(
        CheckTests.domain(
          Self.host, leaves.map { try pin($0.leaf) },
          ca: authorities.map { try pin($0.certificate) })),
      to: "list")
  }

  private func check(_ backup: String) async throws -> ChildProcess.Outcome {
    try directory.write(backup, to: "next.pem")
    return try await Tool.run(
      "check", directory.path("list"), "--host", Self.host, "--chain", directory.path("chain.pem"),
      "--ca", directory.path("ca.pem"), "--backup", directory.path("next.pem"), "--format", "json")
  }

  /// Of the rule `backup-refused`: each finding's severity.
  private func told(_ backup: String) async throws -> [String] {
    let outcome = try await check(backup)
    let findings = try #require(
      try outcome.json.arrayValue, "\(outcome.stderr)"
    ).compactMap(\.objectValue)
    let severities = findings.filter { $0["rule"] == .string("backup-refused") }
      .compactMap { $0["severity"]?.stringValue }
    #expect(outcome.exitCode == (severities.contains("error") ? 1 : 0), "\(outcome.stdout)")
    return severities
  }

  @Test("the next certificate is let in under a CA that the list has, and refused under another")
  func otherAuthority() async throws {
    let (same, other) = (
      try now.issue(names: [Self.host]), try next.issue(names: [Self.host])
    )
    try list([current, same, other], ca: [now])
    #expect(try await told(Self.whole(same)).isEmpty)
    #expect(try await told(Self.whole(other)) == ["error"])
    try list([current, other], ca: [now, next])
    #expect(try await told(Self.whole(other)).isEmpty)
  }

  @Test("a next certificate that every client refuses is an error, with its intermediates or alone")
  func refusedByAll() async throws {
    let own = try PrivateKey.generate(.p256)
    let day: Int64 = 86_400
    let refused = [
      try now.issue(names: ["other.example"]),
      try now.issue(
        names: [Self.host],
        validity: Validity(notBefore: moment - 9 * day, notAfter: moment - day)),
      try next.issue(names: ["other.example"]),
    ]
    try list([current] + refused, ca: [])
    for identity in refused {
      #expect(try await told(Self.whole(identity)) == ["error"], "\(identity.leaf.subject)")
      #expect(try await told(identity.leaf.pem) == ["error"], "\(identity.leaf.subject)")
    }
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger").issueIntermediate(name: "S")
      .issue(names: [Self.host])
    try list([current, stranger], ca: [])
    #expect(try await told(Self.whole(stranger)) == ["error"])
    let signed = try CertificateAuthority.makeRoot(name: Self.host, key: own)
    try directory.write(
      CheckTests.apple(
        CheckTests.domain(Self.host, [try pin(current.leaf), try pin(signed.certificate)])),
      to: "list")
    #expect(try await told(signed.certificate.pem) == ["error"])
  }

  @Test("a next certificate that is not valid yet is judged at its beginning")
  func notYet() async throws {
    let later = try now.issue(
      names: [Self.host],
      validity: Validity(notBefore: moment + 86_400, notAfter: moment + 90 * 86_400))
    try list([current, later], ca: [now])
    #expect(try await told(Self.whole(later)).isEmpty)
    #expect(try await told(later.leaf.pem).isEmpty)
  }

  @Test(
    "a certificate alone is judged behind today's intermediates, and a path that they lack is a warning"
  )
  func alone() async throws {
    let (same, other) = (
      try now.issue(names: [Self.host]), try next.issue(names: [Self.host])
    )
    try list([current, same, other], ca: [])
    #expect(try await told(same.leaf.pem).isEmpty)
    #expect(try await told(other.leaf.pem) == ["warning"])
    try list([current, same], ca: [next, now])
    #expect(try await told(same.leaf.pem).isEmpty)
  }

  @Test("a request or a bare key is told where the list demands a CA, and only there")
  func withoutCertificate() async throws {
    let key = try PrivateKey.generate(.p256)
    let one = try now.issue(names: [Self.host], key: key)
    for file in [try CertificateRequest.pem(signedBy: key), try key.publicKeyPEM] {
      try list([current, one], ca: [now])
      #expect(try await told(file) == ["warning"])
      try list([current, one], ca: [])
      #expect(try await told(file).isEmpty)
      try list([current], ca: [])
      #expect(try await told(file) == ["error"])
    }
  }

  @Test(
    "a file of several servers' keys is refused, and one of a single key in several forms is read")
  func severalKeys() async throws {
    let key = try PrivateKey.generate(.p256)
    let one = try now.issue(names: [Self.host], key: key)
    let again = try now.issue(names: [Self.host], key: key)
    let request = try CertificateRequest.pem(signedBy: key)
    try list([current, one], ca: [now])
    for file in [
      Self.whole(current) + request, Self.whole(current) + Self.whole(one),
      request + current.leaf.pem, Self.whole(one) + again.leaf.pem,
    ] {
      let outcome = try await check(file)
      #expect(outcome.exitCode == 1)
      #expect(outcome.stderr.contains("several servers' keys"), "\(outcome.stderr)")
    }
    #expect(try await told(request + Self.whole(one)).isEmpty)
    #expect(try await told(Self.whole(one) + (try key.publicKeyPEM)).isEmpty)
  }
}
