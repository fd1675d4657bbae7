import SslPinningRules

@testable import RegistryServer

/// Reports for tests.
enum ReportFactory {
  static let now: Int64 = 1_780_000_000

  /// A report about a host, with the key of a byte.
  static func report(
    _ host: String = "www.example.com", leaf: UInt8 = 1, app: String = "com.example.app",
    version: String = "1.0", result: Int64? = 1, count: Int64 = 1, id: String? = nil
  ) throws -> CollectedReport {
    var report = CollectedReport(
      host: try HostName(host), chain: PresentedChain(leafPin: pin(leaf)))
    report.chain.digest = CertificateFingerprint(digest: [UInt8](repeating: leaf, count: 32))
    report.chain.subject = "CN=\(leaf)"
    report.chain.issuer = "CN=issuer"
    report.app = app
    report.version = version
    report.platform = "IOS"
    report.result = result
    report.count = count
    report.id = id
    return report
  }

  /// One report as news of its own.
  static func news(_ report: CollectedReport) -> ReportNews {
    ReportNews(reports: 1, failures: report.count)
  }
}

extension ReportLedger {
  /// Counts a report at a time.
  mutating func add(_ report: CollectedReport, isListed: Bool = true, at now: Int64) {
    add(report, as: ReportFactory.news(report), isListed: isListed, at: now)
  }

  /// The counts of the listed groups, by host and the first byte of the leaf's pin.
  var counts: [String: Int64] {
    Dictionary(
      listed.groups.values.map { group in
        ("\(group.key.host) \(group.key.leafPin?.bytes[0] ?? 0)", group.reports)
      }, uniquingKeysWith: +)
  }
}
