import CanonicalJSON
import RegistryCore
import SslPinningRules

/// Tells groups of reports apart: gathers the facts of each, which ``ReportFacts`` decides by.
struct ReportSorter: Sendable {
  private let known: KeyKnowledge
  private var hostsOfIssuer: [String: Set<HostName>] = [:]
  private var hostsOfLeaf: [SPKIPin: Set<HostName>] = [:]

  /// - Parameter groups: all about listed hosts, by which hosts that show the same are counted.
  init(_ groups: some Sequence<ReportGroup>, _ known: KeyKnowledge) {
    self.known = known
    for group in groups where group.standing == .unverified {
      if group.namesHost == true {
        hostsOfIssuer[Self.issuer(of: group), default: []].insert(group.key.host)
      }
      guard let pin = group.key.leafPin else { continue }
      hostsOfLeaf[pin, default: []].insert(group.key.host)
    }
  }

  /// What a group amounts to.
  func verdict(of group: ReportGroup) -> ReportVerdict {
    var facts = ReportFacts()
    facts.key = group.key.leafPin.map { known.place(of: $0, for: group.key.host) }
    (facts.wasListed, facts.namesHost) = (group.wasListed, group.namesHost)
    facts.isVerified = group.standing == .verified
    // Reports as of RFC 7469 have no result: they are about valid chains alone.
    facts.isValidToApp = (group.key.result ?? 1) == 1
    facts.lacksIssuer = group.lacksIssuer
    facts.isIssuerKnown = !group.isSelfIssued && known.knows(issuer: group.issuer)
    facts.hostsOfIssuer = hostsOfIssuer[Self.issuer(of: group)]?.count ?? 1
    facts.hostsOfLeaf = group.key.leafPin.flatMap { hostsOfLeaf[$0]?.count } ?? 1
    facts.endpoints = known.endpoints
    facts.probed = known.probed(group.key.host)
    (facts.first, facts.last) = (group.first, group.last)
    return facts.verdict
  }

  /// Certificates that vouch for themselves have no issuer in common, but the same hand.
  private static func issuer(of group: ReportGroup) -> String {
    group.isSelfIssued ? "" : group.issuer
  }
}

/// The reports of the last day about listed hosts, told apart: a value for metrics, alerts, and beside held keys.
struct ReportPicture: Sendable {
  /// How many apps meet a key.
  struct Meeting: Sendable, Equatable {
    /// Reports of the busiest hour: an app of ours that keeps failing sends one an hour.
    var apps: Int64 = 0
    var reports: Int64 = 0
    /// When the newest came, in Unix seconds.
    var last: Int64?
  }

  /// A key that an interception is reported of. Hosts below a wildcard can be invented, keys under an authority cannot.
  struct Interception: Sendable, Equatable {
    /// The host of the first report.
    var host: HostName
    let pin: SPKIPin
    var issuer: String
    var reports: Int64 = 0
    var first: Int64
    var hosts: Set<HostName> = []

    mutating func note(_ group: ReportGroup, _ count: Int64) {
      reports = ReportCount.sum(reports, count)
      hosts.insert(group.key.host)
      guard (group.first, "\(group.key.host)") < (first, "\(host)") else { return }
      (first, host, issuer) = (group.first, group.key.host, group.issuer)
    }
  }

  private struct Met: Sendable {
    var hours = ReportBuckets.recentHours
    var last = Int64.min

    mutating func note(_ group: ReportGroup) {
      hours.merge(group.hours)
      last = max(last, group.last)
    }
  }

  /// When it was made, in Unix seconds.
  let time: Int64
  private(set) var reports: [ReportClass: Int64] = [:]
  /// Those of chains that an authority issued.
  private(set) var verified: Int64 = 0
  /// Those with the most reports first, at most ``mostInterceptions``.
  private(set) var interceptions: [Interception] = []
  /// All others, the newest first, at most ``mostOthers``.
  private(set) var otherInterceptions: [Interception] = []
  /// How many reports came in each hour, the one under way last.
  let hourly: [Int64]
  private var met: [SPKIPin: [HostName: Met]] = [:]

  /// Seconds that it reaches back.
  static let reach: Int64 = 86_400
  static let (mostInterceptions, mostOthers) = (20, 200)

  init(of summary: ReportSummary) {
    time = summary.now
    let (now, first) = (time, time - Self.reach)
    let table = summary.endpointKeys.listed
    let start = table.hours.start(of: now)
    hourly = (0..<24).reversed().map { back in
      table.hours.cells.first { $0.start == start - back * 3600 }?.count ?? 0
    }
    var found: [SPKIPin: Interception] = [:]
    for group in table.groups.values {
      let count = group.count(since: first, until: now + 1, at: now)
      guard count > 0 else { continue }
      if group.standing == .verified { verified = ReportCount.sum(verified, count) }
      let kind = summary.verdict(of: group).kind
      reports[kind] = ReportCount.sum(reports[kind] ?? 0, count)
      guard let pin = group.key.leafPin else { continue }
      met[pin, default: [:]][group.key.host, default: Met()].note(group)
      guard kind == .interception else { continue }
      let begun = Interception(
        host: group.key.host, pin: pin, issuer: group.issuer, first: group.first)
      found[pin, default: begun].note(group, count)
    }
    let sorted = found.values.sorted {
      ($1.reports, $0.first, $0.pin) < ($0.reports, $1.first, $1.pin)
    }
    interceptions = Array(sorted.prefix(Self.mostInterceptions))
    let others = sorted.dropFirst(Self.mostInterceptions).sorted {
      ($1.first, $0.pin) < ($0.first, $1.pin)
    }
    otherInterceptions = Array(others.prefix(Self.mostOthers))
  }

  /// How many apps meet a key at the hosts of these patterns.
  func meeting(_ pin: SPKIPin, _ patterns: [HostPattern]) -> Meeting {
    var hours = ReportBuckets.recentHours
    var meeting = Meeting()
    for (host, met) in met[pin] ?? [:] where patterns.contains(where: { $0.matches(host) }) {
      hours.merge(met.hours)
      meeting.last = max(meeting.last ?? met.last, met.last)
    }
    let cells = hours.cells.filter { time - $0.start < Self.reach }
    meeting.apps = cells.map(\.count).max() ?? 0
    meeting.reports = cells.reduce(0) { ReportCount.sum($0, $1.count) }
    return meeting
  }
}

extension ReportSummary {
  /// The last day's reports told apart.
  var picture: ReportPicture { ReportPicture(of: self) }
}

extension ReportPicture {
  /// What people are told: each of the keys with the most reports, and all others together, which is told again once they are
  /// more. Strangers choose which keys have many reports: those of twenty old certificates would hide the one that counts.
  var conditions: [Condition] {
    let each = interceptions.map { found in
      Condition(
        .interception, subject: "\(found.host)", pin: found.pin, since: found.first,
        message: "\(found.reports) reports within a day of a chain that an authority issued"
          + " (\(found.issuer)) for \(found.hosts.count) of the hosts, whose key no probe saw: somebody may stand between some apps and the server"
      )
    }
    guard let since = otherInterceptions.map(\.first).min() else { return each }
    let keys = otherInterceptions.map { "\($0.host) \($0.pin.base64)" }
    var others = Condition(
      .interception, since: since,
      message: "besides \(each.count) keys with more reports, the same is reported of"
        + " \(keys.count), the newest first: \(keys.joined(separator: ", "))")
    others.listed = Set(otherInterceptions.map(\.pin.base64))
    return each + [others]
  }

  /// As administrators see it: reports by class, and by the hour.
  func shown(isCollecting: Bool) -> JSONValue {
    .object([
      "collecting": .bool(isCollecting),
      "classes": .object(
        JSONObject(
          ReportClass.allCases.map { ($0.rawValue, ReportLedger.number(reports[$0] ?? 0)) })),
      "hourly": .array(hourly.map { ReportLedger.number($0) }),
    ])
  }
}
