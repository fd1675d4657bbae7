import CanonicalJSON

/// Who knows of the pin failures that apps reported.
protocol ReportsSource: Sendable {
  /// What was reported in a time, as `ReportSummary` in `docs/openapi.yaml` describes it, without
  /// `collecting`, `since`, `until` and `bucket`; `nil` where reports are not collected.
  ///
  /// - Parameters:
  ///   - since: the first second, in Unix time.
  ///   - until: the first second behind it.
  ///   - bucket: how many seconds each count spans; at most 1000 buckets are asked for.
  func summary(since: Int64, until: Int64, bucket: Int64) async -> JSONObject?
}

/// Where nobody collects reports.
struct NoReports: ReportsSource {
  func summary(since: Int64, until: Int64, bucket: Int64) async -> JSONObject? { nil }
}
