/// Who knows of the pin failures that apps reported.
protocol ReportsSource: Sendable {
  /// Whether reports are taken here.
  var isCollecting: Bool { get }

  /// What was counted so far.
  func summary() async -> ReportSummary
}

extension ReportCollector: ReportsSource {
  nonisolated var isCollecting: Bool { true }
}

/// Where nobody collects reports.
struct NoReports: ReportsSource {
  let clock: any ServerClock

  var isCollecting: Bool { false }

  func summary() async -> ReportSummary { ReportSummary(of: ReportLedger(), at: clock.now()) }
}
