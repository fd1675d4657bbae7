import SslPinningRules

/// What a report adds to what is counted.
struct ReportNews: Sendable, Equatable {
  /// 1, or 0 where it came before.
  var reports: Int64
  /// The failures that were not counted with it before.
  var failures: Int64
}

/// Remembers the newest reports by their `report-id`: a sender that did not get our answer sends the same
/// again, with the same count or a larger one.
///
/// Bounded, and only of this process: a repeat that comes to another server, or after a restart, counts
/// twice. Counts tell an operator where apps fail, not how often to the last one.
struct ReportMemory: Sendable {
  private struct Name: Hashable {
    let host: HostName
    let id: String
  }

  let limit: Int
  private var counts: [Name: Int64] = [:]
  private var order: [Name] = []
  /// Where the oldest stands in `order`, which is used round.
  private var oldest = 0

  init(limit: Int = 20_000) { self.limit = limit }

  /// What a report adds; `nil` where it says nothing new.
  mutating func news(of report: CollectedReport) -> ReportNews? {
    guard let id = report.id, !id.isEmpty else {
      return ReportNews(reports: 1, failures: report.count)
    }
    let name = Name(host: report.host, id: id)
    if let known = counts[name] {
      guard report.count > known else { return nil }
      counts[name] = report.count
      return ReportNews(reports: 0, failures: report.count - known)
    }
    if order.count < limit {
      order.append(name)
    } else if limit > 0 {
      counts[order[oldest]] = nil
      order[oldest] = name
      oldest = (oldest + 1) % limit
    }
    if limit > 0 { counts[name] = report.count }
    return ReportNews(reports: 1, failures: report.count)
  }
}
