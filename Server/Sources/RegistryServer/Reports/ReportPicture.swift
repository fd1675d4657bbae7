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

  /// A host and a key that an interception is reported of.
  struct Interception: Sendable, Equatable {
    let host: HostName
    let pin: SPKIPin
    var issuer: String
    var reports: Int64
    var first: Int64
  }

  private struct Met: Sendable {
    let host: HostName
    var hours: ReportBuckets
    var last: Int64
  }

  /// When it was made, in Unix seconds.
  let time: Int64
  private(set) var reports: [ReportClass: Int64] = [:]
  /// Those with the most reports first, at most ``mostInterceptions``.
  private(set) var interceptions: [Interception] = []
  /// How many reports came in each hour, the one under way last.
  let hourly: [Int64]
  private var met: [SPKIPin: [Met]] = [:]

  /// Seconds that it reaches back.
  static let reach: Int64 = 86_400
  static let mostInterceptions = 20

  init(of summary: ReportSummary) {
    time = summary.now
    let (now, first) = (time, time - Self.reach)
    let table = summary.endpointKeys.listed
    let start = table.hours.start(of: now)
    hourly = (0..<24).reversed().map { back in
      table.hours.cells.first { $0.start == start - back * 3600 }?.count ?? 0
    }
    for group in table.groups.values {
      let count = group.count(since: first, until: now + 1, at: now)
      guard count > 0 else { continue }
      let kind = summary.verdict(of: group).kind
      reports[kind] = ReportCount.sum(reports[kind] ?? 0, count)
      guard let pin = group.key.leafPin else { continue }
      note(group, of: pin)
      if kind == .interception { note(interception: group, of: pin, count) }
    }
    interceptions.sort { ($1.reports, $0.first) < ($0.reports, $1.first) }
    interceptions = Array(interceptions.prefix(Self.mostInterceptions))
  }

  /// How many apps meet a key at the hosts of these patterns.
  func meeting(_ pin: SPKIPin, _ patterns: [HostPattern]) -> Meeting {
    var hours = ReportBuckets.recentHours
    var meeting = Meeting()
    for met in met[pin] ?? [] where patterns.contains(where: { $0.matches(met.host) }) {
      hours.merge(met.hours)
      meeting.last = max(meeting.last ?? met.last, met.last)
    }
    let cells = hours.cells.filter { time - $0.start < Self.reach }
    meeting.apps = cells.map(\.count).max() ?? 0
    meeting.reports = cells.reduce(0) { ReportCount.sum($0, $1.count) }
    return meeting
  }

  private mutating func note(_ group: ReportGroup, of pin: SPKIPin) {
    var all = met[pin] ?? []
    if let index = all.firstIndex(where: { $0.host == group.key.host }) {
      all[index].hours.merge(group.hours)
      all[index].last = max(all[index].last, group.last)
    } else {
      all.append(Met(host: group.key.host, hours: group.hours, last: group.last))
    }
    met[pin] = all
  }

  private mutating func note(interception group: ReportGroup, of pin: SPKIPin, _ count: Int64) {
    let index = interceptions.firstIndex { $0.host == group.key.host && $0.pin == pin }
    guard let index else {
      interceptions.append(
        Interception(
          host: group.key.host, pin: pin, issuer: group.issuer, reports: count, first: group.first))
      return
    }
    interceptions[index].reports = ReportCount.sum(interceptions[index].reports, count)
    interceptions[index].first = min(interceptions[index].first, group.first)
  }
}

extension ReportSummary {
  /// The last day's reports told apart.
  var picture: ReportPicture { ReportPicture(of: self) }
}

extension ReportPicture {
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
