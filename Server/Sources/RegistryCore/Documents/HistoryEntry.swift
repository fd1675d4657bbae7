import CanonicalJSON
import SslPinningRules

/// One change of a document: when, what, why, who. Entries are only ever appended.
public struct HistoryEntry: Sendable, Hashable {
  /// Who changes documents without being asked.
  public static let monitor = "monitor"
  /// Who changes documents by what the operator configured.
  public static let configuration = "configuration"

  /// When, in Unix seconds.
  public var time: Int64
  /// What, as a short stable name such as `key_published`.
  public var event: String
  /// The endpoint's id; empty where it is about the whole document.
  public var endpoint: String
  /// The key that it is about.
  public var pin: SPKIPin?
  /// Why, for people.
  public var why: String
  /// Who: ``monitor``, ``configuration``, or the name in an administrator's token.
  public var who: String

  /// An entry.
  public init(
    time: Int64, event: String, endpoint: String = "", pin: SPKIPin? = nil, why: String = "",
    who: String
  ) {
    self.time = time
    self.event = event
    self.endpoint = endpoint
    self.pin = pin
    self.why = why
    self.who = who
  }

  /// The entry as it is stored and shown.
  public var json: JSONObject {
    var json: JSONObject = [
      "time": .number(JSONNumber(exactly: time) ?? 0), "event": .string(event),
      "why": .string(why), "who": .string(who),
    ]
    if !endpoint.isEmpty { json["endpoint"] = .string(endpoint) }
    if let pin { json["pin"] = .string(pin.base64) }
    return json
  }

  /// Reads a stored entry; `nil` where it is none.
  public init?(_ json: JSONValue) {
    guard let object = json.objectValue, let time = object["time"]?.integerValue,
      let event = object["event"]?.stringValue, let who = object["who"]?.stringValue
    else { return nil }
    self.init(
      time: time, event: event, endpoint: object["endpoint"]?.stringValue ?? "",
      pin: (object["pin"]?.stringValue).flatMap { try? SPKIPin(base64: $0) },
      why: object["why"]?.stringValue ?? "", who: who)
  }
}

extension HistoryEntry {
  /// Whether the monitor of another server has told the same: what this entry says happened came to
  /// be between `base` and `theirs`.
  package func isTold(by theirs: DocumentState, since base: DocumentState) -> Bool {
    guard who == HistoryEntry.monitor, let pin else { return false }
    let (before, after) = (base.key(pin, of: endpoint), theirs.key(pin, of: endpoint))
    switch event {
    case KeyEvent.published(pin, isFirst: false).name,
      KeyEvent.waiting(pin, probes: 1, needed: 1).name:
      return before == nil && after != nil
    case KeyEvent.held(pin, []).name:
      return before == nil && (after != nil || theirs.isHeld(pin, at: endpoint))
        && !base.isHeld(pin, at: endpoint)
    case KeyEvent.activated(pin).name:
      return before?.staged != nil && after != nil && after?.staged == nil
    case KeyEvent.retired(pin).name, KeyEvent.withdrawn(pin).name:
      return before != nil && after == nil
    default: return false
    }
  }
}

extension DocumentState {
  fileprivate func key(_ pin: SPKIPin, of endpoint: String) -> KnownKey? {
    keysByEndpoint[endpoint]?.keys.first { $0.pin == pin }
  }

  fileprivate func isHeld(_ pin: SPKIPin, at endpoint: String) -> Bool {
    keysByEndpoint[endpoint]?.held[pin] != nil
  }
}
