import CanonicalJSON
import SslPinningRules

/// Verdicts and queues that the tests of reports share.
enum ReportFixtures {
  static let app = ReportedApp(
    bundleID: "com.example.app", version: "1.2", platform: "IOS", platformVersion: "15.0.1",
    vendorID: "vendor")

  static func pin(_ byte: UInt8) -> SPKIPin {
    SPKIPin(computed: [UInt8](repeating: byte, count: 32))
  }

  static func verdict(
    host: String = "www.example.com", _ outcome: PinEvaluation.Outcome = .mismatch(.leaf),
    _ decision: PinEvaluation.Decision = .refuse, leaf: UInt8? = 1
  ) -> PinEvaluation {
    PinEvaluation(
      host: host, outcome: outcome, decision: decision, presented: leaf.map { [pin($0)] } ?? [],
      expectedLeaf: [Pin(pin(9))])
  }

  /// Adds one sighting of a verdict to a queue.
  static func add(
    _ verdict: PinEvaluation, to queue: inout ReportQueue, urls: [String] = ["u"], at now: Int64,
    app: ReportedApp = app
  ) {
    var inbox = ReportInbox()
    if let report = FailureReport(verdict, includesForgiven: true) { inbox.add(report, at: now) }
    queue.add(inbox, app: app, urls: urls, at: now) { "id" }
  }

  /// What a delivery says.
  static func json(_ delivery: ReportQueue.Delivery?) throws -> JSONObject {
    struct NoReport: Error {}
    guard let delivery, let json = try JSONValue(parsing: delivery.body).objectValue else {
      throw NoReport()
    }
    return json
  }
}
