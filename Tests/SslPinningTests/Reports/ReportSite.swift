import CanonicalJSON
import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import SslPinningTesting
import TLSTools
import TestSupport

/// A collector over TLS under a CA of its own, a directory for reports, and a clock.
final class ReportSite: Sendable {
  let authority: CertificateAuthority
  let collector: LocalTLSServer
  let clock = TestClock(now: Date(unixSeconds: 1_700_000_000))
  let directory: TemporaryDirectory
  let trouble = Locked([ReportingEvent]())
  private let answer = Locked(HTTPResponse(status: 204))

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "Collector root")
    directory = try TemporaryDirectory()
    let answer = answer
    collector = try LocalTLSServer(identity: authority.issue(names: ["localhost"])) { _ in
      answer.withLock { $0 }
    }
  }

  /// With a key in it, as collectors' URLs have them.
  var url: String { "https://localhost:\(collector.port)/reports?key=secret" }
  var path: String { directory.path("state/failure-reports.json") }

  func answer(_ response: HTTPResponse) { answer.withLock { $0 = response } }

  /// A reporter as an app's next start would make it.
  func reporter(
    urls: [String]? = nil, directory path: String? = nil, rules: ReportRules = ReportRules(),
    includesReportOnly: Bool = true
  ) throws -> FailureReporter {
    // Without chance in it: what is put off is put off for the shortest time.
    var clocks = clock.clocks
    clocks.random = { 0 }
    return try FailureReporter(
      config: ReportingConfig(
        urls: urls ?? [url], appBundleId: "com.example.app", appVersion: "1",
        includesReportOnly: includesReportOnly),
      directory: path ?? directory.path("state"),
      poster: ReportPoster(trust: .anchors([authority.root.der])), clocks: clocks,
      rules: rules, events: { [trouble] event in trouble.withLock { $0.append(event) } })
  }

  static func verdict(_ host: String = "shop.example.com", leaf: UInt8 = 1) -> PinEvaluation {
    PinEvaluation(
      host: host, outcome: .mismatch(.leaf), decision: .refuse,
      presented: [SPKIPin(computed: [UInt8](repeating: leaf, count: 32))])
  }

  /// The reports that the collector was sent, whatever it answered.
  func received() throws -> [JSONObject] {
    try collector.requests.compactMap { try JSONValue(parsing: $0.body).objectValue }
  }

  /// How many failures of each host the collector was told of.
  func counts() throws -> [String: Int64] {
    try received().reduce(into: [:]) { counts, report in
      counts[report["hostname"]?.stringValue ?? "", default: 0] +=
        report["count"]?.integerValue ?? 0
    }
  }
}
