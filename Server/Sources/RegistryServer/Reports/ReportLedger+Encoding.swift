import CanonicalJSON
import SslPinningRules

/// What the store keeps under ``ReportCollector/recordName``:
///
///     { "format": 1, "writers": { "<name>": [serial, time] },
///       "listed": { "hours": [start, count, start, count, …], "droppedGroups": 0, "droppedReports": 0,
///         "groups": [ { "host", "leafPin"?, "chain"?, "subject"?, "issuer"?, "app"?, "version"?,
///                       "platform"?, "rule"?, "result"?, "enforced"?, "reports", "failures",
///                       "first", "last", "standing", "hours": […], "days": […] } ] },
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
