import SslPinningRules

/// All reports that were counted: a value, which ``ReportCollector`` keeps in the store.
///
/// - Reports about hosts that no document lists are in a small table of their own: anybody can post
///   anything, and must not push out what is true.
/// - Several servers add up. Each keeps what it counted since its last write apart (a endpointKeys too), adds it
///   to what the store has, and replaces that by compare and swap; who loses adds to the winner's.
/// - An addition has its writer's name and number, and the endpointKeys keeps the last number of each writer: one
///   whose acknowledgement was lost is recognised when the record is read again, and not added twice.
struct ReportLedger: Sendable, Equatable {
  /// How much is kept.
  struct Limits: Sendable, Equatable {
    /// The most groups about hosts that are listed, in all and of one host.
    var groups: Int
    var groupsOfOneHost: Int
    /// The same for hosts that are not.
    var unlistedGroups = 500
    var unlistedGroupsOfOneHost = 20
    /// The most bytes that the groups take in the store: 16 MiB together.
    var bytes = 14 << 20
    var unlistedBytes = 2 << 20

    /// Limits for so many groups about listed hosts; a tenth of them may be of one host.
    init(groups: Int = 10_000) {
      self.groups = groups
      groupsOfOneHost = max(1, groups / 10)
    }
  }

  /// One server's additions so far.
  struct Writer: Sendable, Equatable {
    /// How many it made.
    var serial: Int64
    /// When the last was made, in Unix seconds.
    var time: Int64
  }

  /// The most writers that are remembered, the newest.
  static let mostWriters = 64

  var listed: ReportTable
  var unlisted: ReportTable
  var writers: [String: Writer] = [:]

  /// An empty endpointKeys.
  init(limits: Limits = Limits()) {
    listed = ReportTable(
      limit: limits.groups, hostLimit: limits.groupsOfOneHost, byteLimit: limits.bytes)
    unlisted = ReportTable(
      limit: limits.unlistedGroups, hostLimit: limits.unlistedGroupsOfOneHost,
      byteLimit: limits.unlistedBytes)
  }

  var isEmpty: Bool { listed.isEmpty && unlisted.isEmpty }

  /// Counts a report that came at `now`.
  mutating func add(
    _ report: CollectedReport, as news: ReportNews, isListed: Bool, at now: Int64
  ) {
    if isListed {
      listed.add(report, as: news, at: now)
    } else {
      unlisted.add(report, as: news, at: now)
    }
  }

  /// Adds what another endpointKeys counted; its writers are not taken over.
  mutating func merge(_ other: ReportLedger) {
    listed.merge(other.listed)
    unlisted.merge(other.unlisted)
  }

  /// Adds what a server counted since its last addition; nothing where this very addition was made before.
  mutating func merge(_ addition: ReportLedger, of writer: String, serial: Int64, at now: Int64) {
    guard !has(writer, serial) else { return }
    merge(addition)
    writers[writer] = Writer(serial: serial, time: now)
    for (name, _) in writers.sorted(by: { $0.value.time > $1.value.time }).dropFirst(
      Self.mostWriters)
    {
      writers[name] = nil
    }
  }

  /// Whether a server's addition is in it.
  func has(_ writer: String, _ serial: Int64) -> Bool {
    writers[writer].map { $0.serial >= serial } ?? false
  }

  /// Forgets what is older than thirty days.
  mutating func tidy(at now: Int64) {
    listed.tidy(at: now)
    unlisted.tidy(at: now)
  }
}
