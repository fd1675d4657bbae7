import CanonicalJSON
import RegistryCore

/// The two ways in which the playground's app sends its requests.
enum PlaygroundSession: String, CaseIterable, Sendable {
  /// Over a session of the SDK, by the registry's list.
  case pinned
  /// Over one that trusts the same CA and knows no pins.
  case plain
}

/// How a request ended, seen by somebody who knows what really happened.
enum PlaygroundFate: String, CaseIterable, Sendable {
  /// The real server answered, and nobody else read it.
  case served
  /// Refused, and rightly: an attacker would have read it, or the host is none of the app's.
  case protected
  /// Refused, and the real server was there.
  case refused
  /// An attacker read the request.
  case read
  /// No answer and no verdict.
  case failed
}

/// What the playground has to tell, the newest last.
///
/// - Bounded: the oldest lines go. Requests that end like the one before them are counted in its line.
struct PlaygroundLog {
  /// One line.
  struct Entry {
    enum Kind: String {
      case request
      /// Something that a button did.
      case action
      /// Something that followed from it.
      case notice
      /// Something that did not work.
      case trouble
    }

    let number: Int
    let kind: Kind
    let title: String
    var session: PlaygroundSession?
    var host: String?
    var fate: PlaygroundFate?
    /// Label and value, as the sample app shows them.
    var details: [(String, String)] = []
    var time: Int64 = 0
    var count = 1
    /// Grows with each change of any entry: who has seen all up to one asks for those beyond.
    var stamp = 0
  }

  private static let limit = 200
  private(set) var entries: [Entry] = []
  private(set) var stamp = 0
  private var made = 0

  mutating func add(
    _ kind: Entry.Kind, _ title: String, at time: Int64, session: PlaygroundSession? = nil,
    host: String? = nil, fate: PlaygroundFate? = nil, details: [(String, String)] = []
  ) {
    stamp += 1
    if kind == .request, let same = entries.lastIndex(where: { $0.isLike(session, host) }),
      entries[same].title == title, entries[same].fate == fate,
      entries[same...].allSatisfy({ $0.kind == .request })
    {
      entries[same].count += 1
      entries[same].details = details
      (entries[same].time, entries[same].stamp) = (time, stamp)
      return
    }
    made += 1
    entries.append(
      Entry(
        number: made, kind: kind, title: title, session: session, host: host, fate: fate,
        details: details, time: time, stamp: stamp))
    if entries.count > Self.limit { entries.removeFirst() }
  }

  /// The entries that somebody who has seen everything up to `stamp` has not seen as they are.
  func json(after stamp: Int) -> JSONValue {
    .array(entries.filter { $0.stamp > stamp }.map { .object($0.json) })
  }
}

extension PlaygroundLog.Entry {
  fileprivate func isLike(_ session: PlaygroundSession?, _ host: String?) -> Bool {
    kind == .request && self.session == session && self.host == host
  }

  fileprivate var json: JSONObject {
    [
      "number": .count(number), "kind": .string(kind.rawValue), "title": .string(title),
      "session": session.map { .string($0.rawValue) } ?? .null,
      "host": host.map(JSONValue.string) ?? .null,
      "fate": fate.map { .string($0.rawValue) } ?? .null,
      "details": .array(details.map { .array([.string($0), .string($1)]) }),
      "time": .integer(time), "count": .count(count),
    ]
  }
}

/// What was listed and what was shown, over time, a column for each change.
struct PlaygroundHistory {
  /// What holds for a host between two changes.
  struct Host: Equatable {
    var listed: [String] = []
    /// The pin of whoever clients meet.
    var shown = ""
    var isAttacked = false
    var fates: [PlaygroundSession: PlaygroundFate] = [:]
  }

  private static let limit = 60
  private var columns: [(time: Int64, cause: String, hosts: [String: Host])] = []

  /// Adds a column if anything has changed.
  mutating func observe(_ hosts: [String: Host], cause: String, at time: Int64) {
    guard columns.last?.hosts != hosts else { return }
    columns.append((time, cause, hosts))
    if columns.count > Self.limit { columns.removeFirst() }
  }

  var json: JSONValue {
    .array(
      columns.map { column in
        .object([
          "time": .integer(column.time), "cause": .string(column.cause),
          "hosts": .object(JSONObject(column.hosts.map { ($0.key, .object($0.value.json)) })),
        ])
      })
  }
}

extension PlaygroundHistory.Host {
  var json: JSONObject {
    [
      "listed": .array(listed.map(JSONValue.string)), "shown": .string(shown),
      "attacked": .bool(isAttacked),
      "fates": .object(JSONObject(fates.map { ($0.key.rawValue, .string($0.value.rawValue)) })),
    ]
  }
}
