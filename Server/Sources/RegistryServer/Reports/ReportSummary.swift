import CanonicalJSON
import RegistryCore
import SslPinningRules

/// Reports summed up for charts: by host, by presented chain, by app version, over time.
///
/// - Times are this server's and in Unix seconds. The whole line over time is kept by the hour. Everything
///   else is by the hour within the last two days and by the day before that: a time that begins or
///   ends within an hour, or a day, counts all of it.
/// - Every list is bounded; what does not fit is summed up as `others`.
struct ReportSummary: Sendable {
  /// The steps of the line over time.
  enum Bucket: String, Sendable, CaseIterable {
    case hour
    case day

    var seconds: Int64 { self == .hour ? 3600 : 86_400 }
  }

  /// The most elements of each list.
  static let mostElements = 100
  /// The most lines of app versions.
  static let mostVersions = 8
  /// How far back anything is kept, in seconds.
  static let reach: Int64 = 30 * 86_400

  let endpointKeys: ReportLedger
  let now: Int64
  private let sorter: ReportSorter

  /// A summary of a endpointKeys as it is at `now`.
  ///
  /// - Parameter known: what is known of keys, by which reports are told apart.
  init(of endpointKeys: ReportLedger, at now: Int64, known: KeyKnowledge = KeyKnowledge()) {
    self.endpointKeys = endpointKeys
    self.now = now
    sorter = ReportSorter(endpointKeys.listed.groups.values, known)
  }

  /// What a group of reports about a listed host amounts to.
  func verdict(of group: ReportGroup) -> ReportVerdict { sorter.verdict(of: group) }

  private func told(_ group: ReportGroup) -> JSONObject {
    let verdict = verdict(of: group)
    var told = group.told
    (told["class"], told["why"]) = (.string(verdict.kind.rawValue), .string(verdict.why))
    return told
  }

  /// The sums of the reports that came from `since` to before `until`; both are brought within what is
  /// kept.
  ///
  /// - Parameters:
  ///   - bucket: the steps of the line; of one host beyond the last two days they are days.
  ///   - host: only this one; all where it is `nil`.
  func json(since: Int64, until: Int64, bucket: Bucket, host: HostName? = nil) -> JSONObject {
    let since = min(max(since, now - Self.reach), now)
    let until = min(max(until, since), now + 1)
    let groups = counted(endpointKeys.listed, since: since, until: until, host: host)
    let isRecent = since >= ReportBuckets.recentHours.reach(at: now)
    let steps = host == nil || isRecent ? bucket : .day
    return [
      "since": number(since), "until": number(until), "bucket": .string(steps.rawValue),
      "reports": number(groups.reduce(0) { ReportCount.sum($0, $1.reports) }),
      "timeline": timeline(
        host == nil ? endpointKeys.listed.hours : merged(groups, by: steps), since: since,
        until: until,
        steps),
      "hosts": sums(groups) { ["host": .string("\($0.key.host)")] },
      "chains": sums(groups) {
        told($0).only(["leafPin", "chain", "subject", "issuer", "standing", "class", "why"])
      },
      "classes": sums(groups) { told($0).only(["class"]) },
      "standings": sums(groups) { $0.told.only(["standing"]) },
      "apps": sums(groups) { $0.told.only(["app", "version", "platform"]) },
      "versions": versions(groups, since: since, until: until, steps),
      "results": sums(groups) { $0.told.only(["result", "rule"]) },
      "groups": .array(
        groups.sorted { $0.group.last > $1.group.last }.prefix(Self.mostElements)
          .map { .object(told($0.group)) }),
      "dropped": dropped(endpointKeys.listed),
      "unlisted": unlisted(since: since, until: until, host: host),
    ]
  }

  private struct Counted {
    let group: ReportGroup
    let reports: Int64
  }

  private func counted(
    _ table: ReportTable, since: Int64, until: Int64, host: HostName?
  ) -> [Counted] {
    table.groups.values.compactMap { group in
      guard host == nil || group.key.host == host else { return nil }
      let reports = group.count(since: since, until: until, at: now)
      return reports > 0 ? Counted(group: group, reports: reports) : nil
    }
  }

  private func sums(
    _ groups: [Counted], most: Int = mostElements, by name: (ReportGroup) -> JSONObject
  ) -> JSONValue {
    var sums = ReportSums()
    for counted in groups {
      sums.add(counted.reports, of: counted.group, under: name(counted.group))
    }
    return sums.json(most: most)
  }

  /// The app versions that reported most, each with its line over time.
  private func versions(
    _ groups: [Counted], since: Int64, until: Int64, _ steps: Bucket
  ) -> JSONValue {
    let byVersion = Dictionary(grouping: groups) { [$0.group.key.app, $0.group.key.version] }
    let sorted = byVersion.map { name, groups in
      (name, groups, groups.reduce(0) { ReportCount.sum($0, $1.reports) })
    }.sorted { ($1.2, $0.0[0], $0.0[1]) < ($0.2, $1.0[0], $1.0[1]) }
    return .array(
      sorted.prefix(Self.mostVersions).map { name, groups, reports in
        .object([
          "app": .string(name[0]), "version": .string(name[1]), "reports": number(reports),
          "timeline": timeline(merged(groups, by: steps), since: since, until: until, steps),
        ])
      })
  }

  private func merged(_ groups: [Counted], by bucket: Bucket) -> ReportBuckets {
    groups.reduce(into: bucket == .hour ? .recentHours : .monthOfDays) { sum, counted in
      sum.merge(bucket == .hour ? counted.group.hours : counted.group.days)
    }
  }

  /// `[[start, reports], …]`, with the steps in which there were none.
  private func timeline(
    _ buckets: ReportBuckets, since: Int64, until: Int64, _ steps: Bucket
  ) -> JSONValue {
    var counts: [Int64: Int64] = [:]
    for cell in buckets.cells {
      counts[cell.start - cell.start % steps.seconds, default: 0] += cell.count
    }
    let first = since - since % steps.seconds
    return .array(
      stride(from: first, to: until, by: Int(steps.seconds)).map { start in
        .array([number(start), number(counts[start] ?? 0)])
      })
  }

  private func unlisted(since: Int64, until: Int64, host: HostName?) -> JSONValue {
    let groups = counted(endpointKeys.unlisted, since: since, until: until, host: host)
    return .object([
      "reports": number(groups.reduce(0) { ReportCount.sum($0, $1.reports) }),
      "hosts": sums(groups, most: 20) { ["host": .string("\($0.key.host)")] },
      "dropped": dropped(endpointKeys.unlisted),
    ])
  }

  private func dropped(_ table: ReportTable) -> JSONValue {
    .object(["groups": number(table.droppedGroups), "reports": number(table.droppedReports)])
  }

  private func number(_ value: Int64) -> JSONValue { ReportLedger.number(value) }
}

extension JSONObject {
  /// The members of these names.
  fileprivate func only(_ names: [String]) -> JSONObject {
    JSONObject(names.compactMap { name in self[name].map { (name, $0) } })
  }
}

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
