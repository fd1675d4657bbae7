import CanonicalJSON
import SslPinningRules

/// Counts of reports by something that they have in common.
struct ReportSums {
  private struct Sum {
    var reports: Int64 = 0
    var last: Int64 = .min
    var hosts: Set<HostName> = []

    mutating func add(_ count: Int64, _ group: ReportGroup) {
      reports = ReportCount.sum(reports, count)
      last = max(last, group.last)
      hosts.insert(group.key.host)
    }
  }

  /// By the members that tell an element, such as `{"app":"…","version":"…"}`.
  private var sums: [JSONObject: Sum] = [:]

  /// Counts reports of a group.
  mutating func add(_ reports: Int64, of group: ReportGroup, under name: JSONObject) {
    sums[name, default: Sum()].add(reports, group)
  }

  /// The largest, and what the others come to:
  ///
  ///     { "top": [ { …, "reports": 12, "hosts": 3, "last": 1780000000 } ],
  ///       "others": { "count": 0, "reports": 0 } }
  func json(most: Int) -> JSONValue {
    let ranked = sums.sorted { left, right in
      (left.value.reports, left.value.last) > (right.value.reports, right.value.last)
    }
    let top = ranked.prefix(most).map { name, sum in
      var object = name
      object["reports"] = ReportLedger.number(sum.reports)
      object["hosts"] = ReportLedger.number(Int64(sum.hosts.count))
      object["last"] = ReportLedger.number(sum.last)
      return JSONValue.object(object)
    }
    let rest = ranked.dropFirst(most)
    return .object([
      "top": .array(top),
      "others": .object([
        "count": ReportLedger.number(Int64(rest.count)),
        "reports": ReportLedger.number(
          rest.reduce(0) { ReportCount.sum($0, $1.value.reports) }),
      ]),
    ])
  }
}
