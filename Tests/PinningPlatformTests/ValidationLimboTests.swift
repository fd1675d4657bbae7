import COpenSSL
import Pinning
import PinningPlatform
import TestSupport
import Testing

@Suite("Chains: x509-limbo")
struct ValidationLimboTests {
  /// Cases that must come out as upstream says and do not, each with the reason.
  static let differing = [
    "crl::revoked-certificate-with-crl": "revocation lists are not read",
    "crl::crlnumber-critical": "revocation lists are not read",
    "crl::issuer-missing-crlsign": "revocation lists are not read",
    "pathlen::max-chain-depth-0-exhausted": "there is no limit of one's own on the path's length",
    "pathlen::max-chain-depth-1-exhausted": "there is no limit of one's own on the path's length",
    "rfc5280::aki::cross-signed-root-missing-aki":
      "the anchor names another issuer, so the path ends there as it stands",
    "rfc5280::ca-empty-subject":
      "the anchor names another issuer, so the path ends there as it stands",
    "rfc5280::serial::negative":
      "the anchor is the server's own certificate, serials are not judged",
  ]

  @Test("accepts and refuses what its gate says")
  func gated() throws {
    let cases = try LimboCase.all()
    let rows = try Vectors.rows("x509-limbo/expected.tsv")
    #expect(cases.count == 208)
    #expect(rows.count == cases.count)
    var counts: [String: Int] = [:]
    for row in rows {
      let (id, gate) = (try #require(row.first), try #require(row.last))
      counts[gate, default: 0] += 1
      guard gate != "skip" else { continue }
      let test = try #require(cases.first { $0.id == id })
      let evidence = try evidence(of: test)
      let accepted = evidence.isValidated
      let differs = accepted != (gate == "accept")
      #expect(differs == (Self.differing[id] != nil), "\(id): \(gate), but \(evidence.validation)")
    }
    #expect(counts == ["accept": 48, "reject": 89, "should-reject-hardened": 6, "skip": 65])
  }

  private func evidence(of test: LimboCase) throws -> ChainEvidence {
    let validator = try ChainValidator(trust: .anchors(try test.trusted))
    let host = try HostName(test.expectedPeerName?.value ?? "example.com")
    return validator.evidence(presented: try test.presented, host: host, at: test.unixSeconds)
  }
}
