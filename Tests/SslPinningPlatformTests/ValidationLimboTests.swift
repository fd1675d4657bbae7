import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@Suite("Chains: x509-limbo")
struct ValidationLimboTests {
  /// Whose anchors the trusted certificates of a case are.
  enum Anchors: CaseIterable, Sendable {
    /// The app's: an anchor counts as it stands.
    case own
    /// The system's: only a sound root ends a path.
    case system
  }

  private static let noRevocation = "revocation lists are not read"
  private static let ownAnchor = "an app's own anchor counts as it stands, whoever issued it"

  /// Cases that must come out as upstream says and do not, each with the reason.
  private static let differing: [Anchors: [String: String]] = [
    .own: [
      "crl::revoked-certificate-with-crl": noRevocation,
      "crl::crlnumber-critical": noRevocation,
      "crl::issuer-missing-crlsign": noRevocation,
      "rfc5280::aki::cross-signed-root-missing-aki": ownAnchor,
      "rfc5280::ca-empty-subject": ownAnchor,
      // There the anchor is the server's own certificate.
      "rfc5280::serial::negative": ownAnchor,
    ],
    .system: [
      "crl::revoked-certificate-with-crl": noRevocation,
      "crl::crlnumber-critical": noRevocation,
      "crl::issuer-missing-crlsign": noRevocation,
    ],
  ]

  @Test("accepts and refuses what its gate says", arguments: Anchors.allCases)
  func gated(anchors: Anchors) throws {
    let cases = try LimboCase.all()
    let rows = try Vectors.rows("x509-limbo/expected.tsv")
    let folder = try TemporaryDirectory()
    #expect(cases.count == 208)
    #expect(rows.count == cases.count)
    let differing = try #require(Self.differing[anchors])
    var counts: [String: Int] = [:]
    var came: [String: Int] = [:]
    for row in rows {
      let (id, gate) = (try #require(row.first), try #require(row.last))
      counts[gate, default: 0] += 1
      guard gate != "skip" else { continue }
      let test = try #require(cases.first { $0.id == id })
      // An anchor of the app's with a curve of its own is not even read.
      guard anchors == .system || id != "webpki::explicit-curve" else {
        #expect(gate == "reject")
        #expect(throws: TrustError.self) { try self.evidence(of: test, anchors, in: folder) }
        came[gate, default: 0] += 1
        continue
      }
      let evidence = try evidence(of: test, anchors, in: folder)
      let differs = evidence.isValidated != (gate == "accept")
      if !differs { came[gate, default: 0] += 1 }
      #expect(differs == (differing[id] != nil), "\(id): \(gate), but \(evidence.validation)")
    }
    #expect(counts == ["accept": 48, "reject": 89, "should-reject-hardened": 6, "skip": 65])
    #expect(
      came == [
        "accept": 48, "reject": 89 - differing.count, "should-reject-hardened": 6,
      ])
  }

  private func evidence(
    of test: LimboCase, _ anchors: Anchors, in folder: TemporaryDirectory
  ) throws -> ChainEvidence {
    let bundle = try folder.write(test.trustedCerts.joined(separator: "\n"), to: "anchors.pem")
    let system = SystemAnchors(
      environment: [
        "SSL_CERT_FILE": bundle.path(percentEncoded: false), "SSL_CERT_DIR": folder.path("none"),
      ])
    let validator = try ChainValidator(
      trust: anchors == .own ? .anchors(try test.trusted) : .system, system: system,
      mostIntermediates: test.maxChainDepth ?? VerifySettings.usualMostIntermediates)
    let host = try HostName(test.expectedPeerName?.value ?? "example.com")
    let evidence = validator.evidence(
      presented: try test.presented, host: host, at: test.unixSeconds)
    try expectProbesAgree(validator, with: evidence, on: test)
    return evidence
  }

  /// A probe is told of the same path or of the same fault; the name is no part of that.
  private func expectProbesAgree(
    _ validator: ChainValidator, with evidence: ChainEvidence, on test: LimboCase
  ) throws {
    let examined = validator.examine(try test.presented, at: test.unixSeconds)
    #expect((examined.path == nil) == (examined.fault != nil), "\(test.id)")
    #expect((examined.code == 0) == (examined.fault == nil), "\(test.id)")
    switch evidence.validation {
    case .success(let chain):
      let path = try examined.path?.map { try SPKIPin(certificateDER: $0) }
      #expect(path == chain.path, "\(test.id)")
    case .failure(let fault):
      #expect(examined.fault == nil || examined.fault == fault, "\(test.id)")
    }
  }
}
