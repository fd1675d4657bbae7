import CanonicalJSON
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

  /// Moves the groups of hosts that have become listed to the others. Those of hosts that are listed no more stay where
  /// they are: the small table has no room for them.
  mutating func list(_ isListed: (HostName) -> Bool) {
    for group in unlisted.take({ isListed($0.key.host) }) { listed.merge(group) }
  }

  /// Forgets what is older than thirty days.
  mutating func tidy(at now: Int64) {
    listed.tidy(at: now)
    unlisted.tidy(at: now)
  }
}

/// What the store keeps under ``ReportCollector/recordName``:
///
///     { "format": 1, "writers": { "<name>": [serial, time] },
///       "listed": { "hours": [start, count, start, count, …], "droppedGroups": 0, "droppedReports": 0,
///         "groups": [ { "host", "leafPin"?, "chain"?, "subject"?, "issuer"?, "app"?, "version"?,
///                       "platform"?, "rule"?, "result"?, "enforced"?, "reports", "failures",
///                       "first", "last", "standing", "wasListed"?, "selfIssued"?, "lacksIssuer"?,
///                       "namesHost"?, "hours": […], "days": […] } ] },
///       "unlisted": { likewise } }
///
/// Nothing in it is secret, and nothing identifies a person or a device.
extension ReportLedger {
  static let format: Int64 = 1

  /// The record's bytes.
  var encoded: [UInt8] {
    let writers = self.writers.map { name, writer in
      (name, JSONValue.array([Self.number(writer.serial), Self.number(writer.time)]))
    }
    return JSONValue.object([
      "format": Self.number(Self.format), "writers": .object(JSONObject(writers)),
      "listed": Self.json(listed), "unlisted": Self.json(unlisted),
    ]).canonicalBytes
  }

  /// Reads a record.
  ///
  /// - Throws: ``ReportRecordFault``.
  init(decoding bytes: [UInt8], limits: Limits) throws(ReportRecordFault) {
    self.init(limits: limits)
    let root: JSONValue
    do throws(JSONError) { root = try JSONValue(parsing: bytes) } catch {
      throw Self.failure("\(error)")
    }
    guard let object = root.objectValue, let format = object["format"]?.integerValue else {
      throw Self.failure("it is no record of this program")
    }
    guard format <= Self.format else { throw .newer(format: format) }
    guard format == Self.format else { throw Self.failure("it has the format \(format)") }
    for (name, value) in object["writers"]?.objectValue ?? [:] {
      guard let pair = value.arrayValue, pair.count == 2, let serial = pair[0].integerValue,
        let time = pair[1].integerValue
      else { throw Self.failure("a writer is unreadable") }
      writers[name] = Writer(serial: serial, time: time)
    }
    try Self.read(object["listed"], into: &listed)
    try Self.read(object["unlisted"], into: &unlisted)
  }

  private static func read(
    _ value: JSONValue?, into table: inout ReportTable
  ) throws(ReportRecordFault) {
    guard let object = value?.objectValue, let groups = object["groups"]?.arrayValue else {
      throw failure("a table is missing")
    }
    var read: [ReportGroup] = []
    for value in groups {
      guard let object = value.objectValue, let group = ReportGroup(object) else {
        throw failure("a group is unreadable")
      }
      read.append(group)
    }
    // The oldest stand first: of a record of a server with larger limits they are the ones to leave.
    for group in read { table.merge(group) }
    guard table.hours.read(object["hours"]) else { throw failure("the hours are unreadable") }
    table.droppedGroups = ReportCount.sum(
      table.droppedGroups, object["droppedGroups"]?.integerValue ?? 0)
    table.droppedReports = ReportCount.sum(
      table.droppedReports, object["droppedReports"]?.integerValue ?? 0)
  }

  private static func json(_ table: ReportTable) -> JSONValue {
    .object([
      "hours": table.hours.json, "droppedGroups": number(table.droppedGroups),
      "droppedReports": number(table.droppedReports),
      "groups": .array(
        table.groups.values.sorted { $0.last < $1.last }.map { .object($0.stored) }),
    ])
  }

  static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(exactly: value) ?? 0) }

  private static func failure(_ reason: String) -> ReportRecordFault { .broken(reason: reason) }
}

/// Why the record of the reports cannot be read.
enum ReportRecordFault: Error, Equatable, CustomStringConvertible {
  /// A newer program wrote it. Replacing it would lose what it has.
  case newer(format: Int64)
  /// Nothing can read it, or it is larger than anything that is read.
  case broken(reason: String)

  var description: String {
    switch self {
    case .newer(let format): "the failure reports have the format \(format) of a newer program"
    case .broken(let reason): "the failure reports cannot be read: \(reason)"
    }
  }
}

extension ReportBuckets {
  /// Starts and counts, one after the other.
  var json: JSONValue {
    .array(cells.flatMap { [ReportLedger.number($0.start), ReportLedger.number($0.count)] })
  }

  /// Reads what ``json`` wrote; false where it cannot be.
  mutating func read(_ value: JSONValue?) -> Bool {
    guard let numbers = value?.arrayValue?.map(\.integerValue), numbers.count.isMultiple(of: 2)
    else { return false }
    for index in stride(from: 0, to: numbers.count, by: 2) {
      guard let time = numbers[index], let count = numbers[index + 1], count >= 0 else {
        return false
      }
      add(count, at: time)
    }
    return true
  }
}
