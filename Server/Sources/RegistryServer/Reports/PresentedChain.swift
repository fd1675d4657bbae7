import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What a server showed to an app, as far as people and counts need it.
struct PresentedChain: Sendable, Hashable {
  /// The leaf's pin; `nil` where the report holds neither a chain nor a pin.
  var leafPin: SPKIPin?
  /// Tells chains apart; `nil` where the report holds none. Of a verified chain it is SHA-256 over the pins of the
  /// validated path: what a stranger sends beside that makes no other chain. Else it is SHA-256 over the DER of the
  /// certificates that count, in the order presented, each behind its length in four bytes.
  var digest: CertificateFingerprint?
  /// The certificates in DER, the leaf first, for whoever judges them; of a chain that is kept they are not.
  var certificates: [[UInt8]] = []
  /// The leaf's subject and issuer, cleaned; empty where they cannot be read.
  var subject = ""
  var issuer = ""
  /// Whether the leaf names itself as its issuer.
  var isSelfIssued = false
  /// Whether no certificate of the leaf's issuer, by its name, was sent with it.
  var lacksIssuer = false
  /// Whether the leaf's subjectAltName covers the report's host; `nil` where the report holds no certificate.
  var namesHost: Bool?

  /// The most certificates of a chain, as in our own reports.
  static let mostCertificates = 10

  /// A chain of which at most the leaf's key is known.
  init(leafPin: SPKIPin?) { self.leafPin = leafPin }

  /// A chain as a report about a host holds it: a PEM text for each certificate, the leaf first.
  ///
  /// Behind the leaf, one whose key cannot be found is left out. Whoever stands between chooses these bytes, and TLS
  /// libraries read more than DER allows: he must not have the report refused by them.
  ///
  /// - Throws: ``ReportRefusal``; what is no PEM of a certificate, and a leaf without a key, is refused, not counted.
  init(pem texts: [String], member: String, of host: HostName) throws(ReportRefusal) {
    guard texts.count <= Self.mostCertificates else {
      throw .tooMany(member: member, limit: Self.mostCertificates)
    }
    var digested: [UInt8] = []
    var wanted: String?
    for (index, text) in texts.enumerated() {
      let der = try Self.certificate(text, "\(member)[\(index)]")
      guard let pin = try? SPKIPin(certificateDER: der) else {
        guard index > 0 else { throw .notACertificate(member: "\(member)[\(index)]") }
        continue
      }
      digested += (0..<4).map { UInt8(truncatingIfNeeded: der.count >> (24 - 8 * $0)) } + der
      certificates.append(der)
      guard index == 0 else {
        if let issuer = wanted, (try? Certificate(der: der))?.subject == issuer { wanted = nil }
        continue
      }
      leafPin = pin
      // The names are for people: a certificate whose pin can be read counts without them.
      if let certificate = try? Certificate(der: der) {
        let (subject, issuer) = (certificate.subject, certificate.issuer)
        (self.subject, self.issuer) = (ReportText.cleaned(subject), ReportText.cleaned(issuer))
        isSelfIssued = subject == issuer
        wanted = isSelfIssued ? nil : issuer
        namesHost = certificate.isFor(host)
      }
    }
    lacksIssuer = wanted != nil
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

/// Finds out what a reported chain is worth.
struct ReportedChainJudge: Sendable {
  /// The chain by which the server's anchors believe certificates for a host; `nil` if they do not.
  let validated: @Sendable (_ certificates: [[UInt8]], _ host: HostName) -> ValidatedChain?
  /// What this server knows of keys.
  let knowledge: @Sendable () async -> KeyKnowledge

  /// Notes whether the report's chain is verified. Takes as long as validating it does.
  func verify(_ report: inout CollectedReport) {
    guard !report.chain.certificates.isEmpty,
      let chain = validated(report.chain.certificates, report.host)
    else { return }
    report.standing = .verified
    report.chain.digest = CertificateFingerprint(
      digest: Digest.sha256(chain.path.flatMap(\.bytes)))
  }

  /// Where the leaf's key stands for the report's host.
  func place(of report: CollectedReport) async -> KeyPlace {
    guard let pin = report.chain.leafPin else { return .nowhere }
    return await knowledge().place(of: pin, for: report.host)
  }
}

/// Which hosts the documents speak of: looked up by name, however many patterns there are.
struct ListedHosts: Sendable {
  private var exact: Set<HostName> = []
  private var oneMoreLabel: Set<DNSName> = []
  private var anyDepth: Set<DNSName> = []

  /// The hosts of these patterns.
  init(_ patterns: some Sequence<HostPattern>) {
    for pattern in patterns { insert(pattern) }
  }

  mutating func insert(_ pattern: HostPattern) {
    switch pattern {
    case .exact(let host): exact.insert(host)
    case .oneMoreLabel(let base): oneMoreLabel.insert(base)
    case .anyDepth(let base): anyDepth.insert(base)
    }
  }

  /// Whether a pattern matches the host; see ``HostPattern``.
  func contains(_ host: HostName) -> Bool {
    if exact.contains(host) { return true }
    guard case .name(let name) = host else { return false }
    if let parent = name.parent, oneMoreLabel.contains(parent) { return true }
    guard !anyDepth.isEmpty else { return false }
    var ancestor: DNSName? = name
    while let current = ancestor {
      if anyDepth.contains(current) { return true }
      ancestor = current.parent
    }
    return false
  }
}
