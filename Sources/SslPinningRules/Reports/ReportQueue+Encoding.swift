import CanonicalJSON

/// ```
/// { "type": "failure-reports", "format": 1, "dropped": 0,
///   "endpoints": { URL: { "notBefore", "failures", "leaseOwner"?, "leaseUntil" } },
///   "reports": [ { "key", "host", "id", "body": { … },
///                  "pending": { URL: { "count", "first", "last" } },
///                  "sent": { URL: { "serial", "at" } } } ] }
/// ```
extension ReportQueue {
  /// The most bytes of a file of reports: the bodies, and as much again for the rest.
  package var fileLimit: Int { 2 * rules.mostBytes + 65_536 }

  private static let type = JSONValue.string("failure-reports")

  /// The queue as canonical JSON: equal queues have equal bytes.
  package var encoded: [UInt8] {
    let reports = entries.map { entry in
      JSONValue.object([
        "key": .string(entry.key), "host": .string(entry.host), "id": .string(entry.id),
        "body": .object(entry.body),
        "pending": Self.object(entry.pending) {
          [
            "count": Self.number($0.count), "first": Self.number($0.first),
            "last": Self.number($0.last),
          ]
        },
        "sent": Self.object(entry.sent) {
          ["serial": Self.number($0.serial), "at": Self.number($0.at)]
        },
      ])
    }
    let endpoints = Self.object(endpoints) { endpoint in
      var members: JSONObject = [
        "notBefore": Self.number(endpoint.notBefore),
        "failures": Self.number(Int64(endpoint.failures)),
        "leaseUntil": Self.number(endpoint.leaseUntil),
      ]
      members["leaseOwner"] = endpoint.leaseOwner.map { .string($0) }
      return members
    }
    return JSONValue.object([
      "type": Self.type, "format": .number(1), "dropped": Self.number(dropped),
      "endpoints": endpoints, "reports": .array(reports),
    ]).canonicalBytes
  }

  /// Reads the output of ``encoded``; `nil` for anything else. All or nothing: a queue that was only partly read
  /// would send wrong counts.
  package init?(decoding bytes: [UInt8], rules: ReportRules = ReportRules()) {
    self.init(rules: rules)
    let limits = JSONLimits(maximumDepth: 16, maximumBytes: fileLimit)
    guard let json = (try? JSONValue(parsing: bytes, limits: limits))?.objectValue,
      json["type"] == Self.type, json["format"] == .number(1),
      let dropped = Self.natural(json["dropped"]),
      let endpoints = Self.table(json["endpoints"], Self.endpoint),
      let reports = json["reports"]?.arrayValue
    else { return nil }
    self.dropped = dropped
    self.endpoints = endpoints
    for report in reports {
      guard let entry = Self.entry(report) else { return nil }
      entries.append(entry)
    }
  }

  private static func entry(_ json: JSONValue) -> Entry? {
    guard let json = json.objectValue, let key = json["key"]?.stringValue,
      let host = json["host"]?.stringValue, let id = json["id"]?.stringValue,
      let body = json["body"]?.objectValue,
      let pending = table(json["pending"], tally), let sent = table(json["sent"], sent)
    else { return nil }
    return Entry(key: key, host: host, id: id, body: body, pending: pending, sent: sent)
  }

  private static func tally(_ json: JSONObject) -> ReportTally? {
    guard let count = natural(json["count"]), count > 0, let first = natural(json["first"]),
      let last = natural(json["last"])
    else { return nil }
    return ReportTally(count: count, first: first, last: last)
  }

  private static func sent(_ json: JSONObject) -> Sent? {
    guard let serial = natural(json["serial"]), let at = natural(json["at"]) else { return nil }
    return Sent(serial: serial, at: at)
  }

  private static func endpoint(_ json: JSONObject) -> Endpoint? {
    guard let notBefore = natural(json["notBefore"]), let until = natural(json["leaseUntil"]),
      let failures = natural(json["failures"]), failures <= 1000
    else { return nil }
    return Endpoint(
      notBefore: notBefore, failures: Int(failures), leaseOwner: json["leaseOwner"]?.stringValue,
      leaseUntil: until)
  }

  /// Clamps times: no device has a time before 1970 or beyond JSON's exact integers.
  private static func number(_ value: Int64) -> JSONValue {
    .number(JSONNumber(exactly: min(max(value, 0), JSONNumber.greatestInteger)) ?? 0)
  }

  private static func natural(_ json: JSONValue?) -> Int64? {
    json?.integerValue.flatMap { $0 >= 0 ? $0 : nil }
  }

  private static func object<Value>(
    _ table: [String: Value], _ members: (Value) -> JSONObject
  ) -> JSONValue {
    .object(
      JSONObject(
        table.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
          .map { ($0.key, .object(members($0.value))) }))
  }

  private static func table<Value>(
    _ json: JSONValue?, _ read: (JSONObject) -> Value?
  ) -> [String: Value]? {
    guard let json = json?.objectValue else { return nil }
    var table: [String: Value] = [:]
    for (key, value) in json {
      guard let value = value.objectValue.flatMap(read) else { return nil }
      table[key] = value
    }
    return table
  }
}

/// Failures that were just seen and are not on disk yet. Adding one costs a table look-up, so a refused request
/// does not wait for the disk.
///
/// - A repeated failure only increases a count.
/// - Bounded: beyond ``mostReports`` different failures, new ones are counted and not kept.
package struct ReportInbox: Sendable {
  /// The most different failures.
  package static let mostReports = 128

  package struct Item: Sendable {
    package let report: FailureReport
    package var tally: ReportTally
  }

  private var places: [ReportKey: Int] = [:]
  /// The failures, in the order in which they were first seen.
  package private(set) var items: [Item] = []
  /// How many failures were counted and not kept.
  package private(set) var dropped: Int64 = 0

  package init() {}

  package var isEmpty: Bool { items.isEmpty && dropped == 0 }

  /// Adds a failure that was seen at `now` (Unix seconds).
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
