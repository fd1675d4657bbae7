/// Failures that were just seen and are not on the disk yet. Taking one in costs a look-up in a
/// table, so a request that was refused waits for nothing.
///
/// - The same failure again only counts up.
/// - Bounded: of more different failures than ``mostReports``, the newest are counted and not kept.
package struct ReportInbox: Sendable {
  /// The most different failures.
  package static let mostReports = 128

  package struct Item: Sendable {
    package let report: FailureReport
    package var tally: ReportTally
  }

  private var places: [ReportKey: Int] = [:]
  /// What was seen, in order of first sight.
  package private(set) var items: [Item] = []
  /// How many failures were counted and not kept.
  package private(set) var dropped: Int64 = 0

  package init() {}

  package var isEmpty: Bool { items.isEmpty && dropped == 0 }

  /// Takes a failure in that was seen at `now` (Unix seconds).
  package mutating func add(_ report: FailureReport, at now: Int64) {
    let tally = ReportTally(count: 1, first: now, last: now)
    let key = report.key
    if let place = places[key] {
      items[place].tally.add(tally)
    } else if items.count < Self.mostReports {
      places[key] = items.count
      items.append(Item(report: report, tally: tally))
    } else {
      dropped += 1
    }
  }
}
