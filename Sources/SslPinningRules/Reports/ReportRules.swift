/// The numbers by which a queue of reports is kept and sent.
package struct ReportRules: Hashable, Sendable {
  /// The most different failures at a time, and the most of one host: an attack on one host must not
  /// crowd out the report of another.
  package var mostReports = 128
  package var mostOfOneHost = 16
  /// The most bytes of all their bodies together.
  package var mostBytes = 1 << 20
  /// Seconds between two reports of the same failure to one URL. Repeats meanwhile are one report.
  package var window: Int64 = 3600
  /// Seconds for which a process may take to send one report before another may.
  package var lease: Int64 = 120
  /// Seconds for which a report to a URL is kept that no longer seems to be configured.
  package var patience: Int64 = 30 * 86_400

  package init() {}

  /// Bounds of what a server may ask for with Retry-After, in seconds.
  package static let retryAfter: ClosedRange<Int64> = 1...86_400
  /// Bounds of what is waited after a failure without it, in seconds.
  package static let backOff: ClosedRange<Int64> = 60...21_600

  /// Seconds to wait after so many failures in a row (1 or more): somewhere between the least and
  /// twice as much as after the failure before, so that devices which failed together do not come
  /// back together.
  ///
  /// - Parameter random: in 0..<1.
  package static func delay(afterFailures failures: Int, random: Double) -> Int64 {
    let ceiling = min(backOff.lowerBound << Int64(min(max(failures, 1), 20)), backOff.upperBound)
    let spread = Double(ceiling - backOff.lowerBound) * min(max(random, 0), 1)
    return backOff.lowerBound + Int64(spread)
  }
}
