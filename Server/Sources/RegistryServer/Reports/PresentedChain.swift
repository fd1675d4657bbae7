import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a server showed to an app, as far as people and counts need it.
struct PresentedChain: Sendable, Hashable {
  /// The leaf's pin; `nil` where the report holds neither a chain nor a pin.
  var leafPin: SPKIPin?
  /// SHA-256 over the certificates' DER in the order presented, each behind its length in four bytes;
  /// `nil` where the report holds none.
  var digest: CertificateFingerprint?
  /// The certificates in DER, the leaf first, for whoever judges them; of a chain that is kept they are not.
  var certificates: [[UInt8]] = []
  /// The leaf's subject and issuer, cleaned; empty where they cannot be read.
  var subject = ""
  var issuer = ""

  /// The most certificates of a chain, as in our own reports.
  static let mostCertificates = 10

  /// A chain of which at most the leaf's key is known.
  init(leafPin: SPKIPin?) { self.leafPin = leafPin }

  /// A chain as a report holds it: a PEM text for each certificate, the leaf first.
  ///
  /// - Throws: ``ReportRefusal``; what is no certificate is refused, not counted.
  init(pem texts: [String], member: String) throws(ReportRefusal) {
    guard texts.count <= Self.mostCertificates else {
      throw .tooMany(member: member, limit: Self.mostCertificates)
    }
    var digested: [UInt8] = []
    for (index, text) in texts.enumerated() {
      let der = try Self.certificate(text, "\(member)[\(index)]")
      digested += (0..<4).map { UInt8(truncatingIfNeeded: der.count >> (24 - 8 * $0)) } + der
      certificates.append(der)
      guard let pin = try? SPKIPin(certificateDER: der) else {
        throw .notACertificate(member: "\(member)[\(index)]")
      }
      guard index == 0 else { continue }
      leafPin = pin
      // The names are for people: a certificate whose pin can be read counts without them.
      if let certificate = try? Certificate(der: der) {
        subject = ReportText.cleaned(certificate.subject)
        issuer = ReportText.cleaned(certificate.issuer)
      }
    }
    digest =
      texts.isEmpty ? nil : CertificateFingerprint(digest: Digest.sha256(digested))
  }

  private static func certificate(
    _ text: String, _ member: String
  ) throws(ReportRefusal) -> [UInt8] {
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: Array(text.utf8)) } catch {
      throw .notACertificate(member: member)
    }
    guard blocks.count == 1, let block = blocks.first, block.label == "CERTIFICATE" else {
      throw .notACertificate(member: member)
    }
    return block.bytes
  }
}
