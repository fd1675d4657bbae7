import RegistryCore
import SslPinningRules

/// Groups of reports, so many and so many bytes at most, and how many reports came in each hour of all of
/// them.
///
/// - What anybody may have made up leaves first, then what is worth more; of the same worth first those whose
///   chain the most groups show, and of these the least recently seen. So neither invented chains nor replays of
///   a host's real one under many app names push out the one that proves an attack.
/// - The newest proof of each host and leaf key leaves last: a verified group whose key was on no list. Of these
///   first those whose key the most hosts show, since hosts below a wildcard can be invented.
/// - When the table is full, a fiftieth of it leaves at once: so a flood of new groups costs a sort now and then,
///   not with each.
/// - One host has its share, of groups and a quarter of the bytes: a flood about one host drops older groups of that host, not of others.
/// - What left is counted; the hours keep counting it.
struct ReportTable: Sendable, Equatable {
  /// The most groups, in all and of one host.
  let limit: Int
  let hostLimit: Int
  /// The most bytes that they take in the store, by ``ReportGroup/size``.
  let byteLimit: Int
  private(set) var groups: [ReportGroupKey: ReportGroup] = [:]
  private(set) var bytes = 0
  private var hosts: [HostName: Share] = [:]

  /// What groups of one host take.
  private struct Share: Sendable, Equatable {
    var groups = 0
    var bytes = 0
  }

  var hours = ReportBuckets.monthOfHours
  /// Groups that had to leave, and the reports that were counted in them.
  var droppedGroups: Int64 = 0
  var droppedReports: Int64 = 0

  init(limit: Int, hostLimit: Int, byteLimit: Int) {
    self.byteLimit = byteLimit
    self.limit = max(1, limit)
    self.hostLimit = max(1, hostLimit)
  }

  var isEmpty: Bool { groups.isEmpty && hours.cells.isEmpty && droppedGroups == 0 }

  /// Counts a report.
  mutating func add(_ report: CollectedReport, as news: ReportNews, at now: Int64) {
    if news.reports > 0 { hours.add(news.reports, at: now) }
    let key = ReportGroupKey(report)
    makeRoom(for: key)
    change(key) { group in
      var changed = group ?? ReportGroup(report, at: now)
      changed.add(report, as: news, at: now)
      group = changed
    }
    keepWithinBytes(after: key)
  }

  /// Adds a group that was counted elsewhere.
  mutating func merge(_ group: ReportGroup) {
    makeRoom(for: group.key)
    change(group.key) { known in
      if known?.merge(group) == nil { known = group }
    }
    keepWithinBytes(after: group.key)
  }

  /// Adds what another table counted.
  mutating func merge(_ other: ReportTable) {
    hours.merge(other.hours)
    droppedGroups = ReportCount.sum(droppedGroups, other.droppedGroups)
    droppedReports = ReportCount.sum(droppedReports, other.droppedReports)
    // The oldest first: among equals that find no room they are the ones to leave.
    for group in other.groups.values.sorted(by: { $0.last < $1.last }) { merge(group) }
  }

  /// Takes groups out, the least recently seen first.
  mutating func take(_ isTaken: (ReportGroup) -> Bool) -> [ReportGroup] {
    let taken = groups.values.filter(isTaken).sorted { $0.last < $1.last }
    for group in taken { remove(group.key) }
    return taken
  }

  /// Forgets groups that no report came of for thirty days, and the oldest hours.
  mutating func tidy(at now: Int64) {
    hours.tidy(at: now)
    let first = ReportBuckets.monthOfDays.reach(at: now)
    for (key, group) in groups {
      if group.last < first { remove(key) } else { change(key) { $0?.tidy(at: now) } }
    }
  }

  private mutating func makeRoom(for key: ReportGroupKey) {
    guard groups[key] == nil else { return }
    if hosts[key.host]?.groups ?? 0 >= hostLimit { drop(hostLimit) { $0.key.host == key.host } }
    if groups.count >= limit { drop(limit) { _ in true } }
  }

  /// The one place in which groups come, change and go, but for ``remove(_:)``.
  private mutating func change(_ key: ReportGroupKey, _ body: (inout ReportGroup?) -> Void) {
    let before = groups[key]?.size
    body(&groups[key])
    guard let after = groups[key]?.size else { return }
    bytes += after - (before ?? 0)
    hosts[key.host, default: Share()].bytes += after - (before ?? 0)
    if before == nil { hosts[key.host, default: Share()].groups += 1 }
  }

  private mutating func keepWithinBytes(after key: ReportGroupKey) {
    while let share = hosts[key.host], share.bytes > byteLimit / 4, share.groups > 1 {
      drop(share.groups) { $0.key.host == key.host }
    }
    while bytes > byteLimit, groups.count > 1 { drop(groups.count) { _ in true } }
  }

  /// Drops a fiftieth of a limit, at least one, of the groups that are candidates.
  ///
  /// Only what decides is sorted: sorting the groups themselves took several times as long.
  private mutating func drop(_ limit: Int, of isCandidate: (ReportGroup) -> Bool) {
    let candidates = groups.values.filter(isCandidate)
    let count = min(max(1, limit / 50), candidates.count)
    guard count > 0 else { return }
    let chains = Dictionary(candidates.map { (Chain($0), 1) }, uniquingKeysWith: +)
    let newest = Dictionary(
      candidates.filter(\.isProof).map { (Subject($0), $0) },
      uniquingKeysWith: { $0.last < $1.last ? $1 : $0 })
    let proofs = Set(newest.values.map(\.key))
    let hostsOfKey = Dictionary(newest.keys.map { ($0.leafPin, 1) }, uniquingKeysWith: +)
    let places = candidates.map { group in
      proofs.contains(group.key)
        ? Place(group, isProof: true, among: hostsOfKey[group.key.leafPin] ?? 1)
        : Place(group, isProof: false, among: chains[Chain(group)] ?? 1)
    }
    let bound = places.sorted()[count - 1]
    // Those of the very same place leave in no order.
    let leaving =
      zip(candidates, places).filter { $0.1 < bound }.map(\.0)
      + zip(candidates, places).filter { $0.1 == bound }.map(\.0)
    for group in leaving.prefix(count) {
      remove(group.key)
      droppedGroups = ReportCount.sum(droppedGroups, 1)
      droppedReports = ReportCount.sum(droppedReports, group.reports)
    }
  }

  /// What a host showed.
  private struct Chain: Hashable {
    let host: HostName
    let digest: CertificateFingerprint?

    init(_ group: ReportGroup) { (host, digest) = (group.key.host, group.key.chain) }
  }

  /// Whose key it is.
  private struct Subject: Hashable {
    let host: HostName
    let leafPin: SPKIPin?

    init(_ group: ReportGroup) { (host, leafPin) = (group.key.host, group.key.leafPin) }
  }

  /// How soon a group leaves: the lower, the sooner.
  private struct Place: Comparable {
    let standing: ChainStanding
    /// 1 for a proof that leaves last, else 0.
    let proof: Int
    let alike: Int
    let last: Int64

    init(_ group: ReportGroup, isProof: Bool, among alike: Int) {
      (standing, proof, self.alike, last) = (group.standing, isProof ? 1 : 0, alike, group.last)
    }

    static func < (left: Self, right: Self) -> Bool {
      (left.standing, left.proof, -left.alike, left.last)
        < (right.standing, right.proof, -right.alike, right.last)
    }
  }

  private mutating func remove(_ key: ReportGroupKey) {
    guard let group = groups.removeValue(forKey: key) else { return }
    bytes -= group.size
    hosts[key.host]?.bytes -= group.size
    hosts[key.host]?.groups -= 1
    if hosts[key.host]?.groups == 0 { hosts[key.host] = nil }
  }
}

/// How many reports came in each hour, or each day: only those that had any, the oldest first.
struct ReportBuckets: Sendable, Equatable {
  struct Cell: Sendable, Equatable {
    /// When it begins, in Unix seconds; a multiple of the width.
    var start: Int64
    var count: Int64
  }

  /// Seconds in each.
  let width: Int64
  /// How many of them are kept, the one that is under way included.
  let most: Int64
  private(set) var cells: [Cell] = []

  init(width: Int64, most: Int64) {
    self.width = width
    self.most = most
  }

  /// The last two days by the hour.
  static let recentHours = ReportBuckets(width: 3600, most: 48)
  /// The last thirty days, by the hour or by the day.
  static let monthOfHours = ReportBuckets(width: 3600, most: 30 * 24)
  static let monthOfDays = ReportBuckets(width: 86_400, most: 30)

  /// When the bucket begins that a time falls into.
  func start(of time: Int64) -> Int64 {
    let rest = time % width
    return time - (rest < 0 ? rest + width : rest)
  }

  /// Counts reports at a time.
  mutating func add(_ count: Int64, at time: Int64) {
    add(Cell(start: start(of: time), count: count))
  }

  /// Adds another's counts, which are of the same width.
  mutating func merge(_ other: ReportBuckets) {
    for cell in other.cells { add(cell) }
  }

  private mutating func add(_ cell: Cell) {
    var place = cells.count
    while place > 0, cells[place - 1].start > cell.start { place -= 1 }
    if place > 0, cells[place - 1].start == cell.start {
      cells[place - 1].count = ReportCount.sum(cells[place - 1].count, cell.count)
    } else {
      cells.insert(cell, at: place)
    }
  }

  /// Drops what is too old.
  mutating func tidy(at now: Int64) {
    let first = start(of: now) - (most - 1) * width
    cells.removeAll { $0.start < first }
  }

  /// The oldest moment that is told, at this time.
  func reach(at now: Int64) -> Int64 { start(of: now) - (most - 1) * width }

  /// How many reports came in the buckets that lie, if only in part, within a time.
  func count(since: Int64, until: Int64) -> Int64 {
    cells.reduce(0) { sum, cell in
      let isWithin = cell.start < until && since - cell.start < width
      return isWithin ? ReportCount.sum(sum, cell.count) : sum
    }
  }
}

/// Sums of counts that strangers send.
enum ReportCount {
  /// Beyond it a count stays where it is; JSON says every smaller one exactly.
  static let most: Int64 = 1 << 50

  static func sum(_ left: Int64, _ right: Int64) -> Int64 { min(left + right, most) }
}
