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

/// Finds out what a reported chain is worth.
struct ReportedChainJudge: Sendable {
  /// Whether the server's anchors believe certificates for a host.
  let believes: @Sendable (_ certificates: [[UInt8]], _ host: HostName) -> Bool
  /// Whether this server knows a key of a host.
  let knows: @Sendable (SPKIPin, _ host: HostName) async -> Bool

  /// Whether the report's chain is verified. Takes as long as validating it does.
  func verifies(_ report: CollectedReport) -> Bool {
    !report.chain.certificates.isEmpty && believes(report.chain.certificates, report.host)
  }

  /// Whether the report's leaf has a key that this server knows.
  func hasSeen(_ report: CollectedReport) async -> Bool {
    guard let pin = report.chain.leafPin else { return false }
    return await knows(pin, report.host)
  }
}

/// The keys of all endpoints: those that are published and those that probes have shown. Gathered every few
/// seconds at most, since reports come as often as strangers like.
final class KnownKeys: Sendable {
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let ticks: @Sendable () -> Int64
  private let newest = Locked<(made: Int64, keys: Task<[SPKIPin: [HostPattern]], Never>)?>(nil)

  /// How long what was gathered is good, in milliseconds.
  static let freshness: Int64 = 5000

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.coordinators, self.ticks) = (coordinators, ticks)
  }

  /// Whether a key is an endpoint's whose patterns match the host.
  func has(_ pin: SPKIPin, of host: HostName) async -> Bool {
    let now = ticks()
    let keys = newest.withLock { newest in
      if let newest, now - newest.made < Self.freshness { return newest.keys }
      let keys = Task { await gathered() }
      newest = (now, keys)
      return keys
    }
    return await keys.value[pin]?.contains { $0.matches(host) } ?? false
  }

  private func gathered() async -> [SPKIPin: [HostPattern]] {
    var found: [SPKIPin: [HostPattern]] = [:]
    for coordinator in coordinators() {
      let snapshot = await coordinator.snapshot
      for endpoint in snapshot.endpoints {
        guard let endpointKeys = snapshot.state.keysByEndpoint[endpoint.id] else { continue }
        for pin in endpointKeys.keys.map(\.pin) + Array(endpointKeys.candidates.keys) {
          found[pin, default: []] += endpoint.patterns
        }
      }
    }
    return found
  }
}

/// Which hosts the published documents speak of: looked up by name, however many patterns there are.
struct ListedHosts: Sendable {
  private var exact: Set<HostName> = []
  private var oneMoreLabel: Set<DNSName> = []
  private var anyDepth: Set<DNSName> = []

  /// The hosts of these patterns.
  init(_ patterns: some Sequence<HostPattern>) {
    for pattern in patterns {
      switch pattern {
      case .exact(let host): exact.insert(host)
      case .oneMoreLabel(let base): oneMoreLabel.insert(base)
      case .anyDepth(let base): anyDepth.insert(base)
      }
    }
  }

  /// The hosts that a configuration publishes keys for.
  init(_ documents: [DocumentConfiguration]) {
    self.init(documents.lazy.flatMap { $0.endpoints.lazy.flatMap(\.patterns) })
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
