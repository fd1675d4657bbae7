import CanonicalJSON
import RegistryCore
import SslPinningRules

extension HistoryEntry {
  /// As administrators see it.
  var shown: JSONObject {
    [
      "time": .integer(time), "event": .string(event),
      "endpoint": .nullable(endpoint.isEmpty ? nil : endpoint), "pin": .nullable(pin),
      "why": .string(why), "who": .string(who),
    ]
  }

  /// A page of a history, and where the next one begins: entries are numbered without a gap from 1.
  static func page(_ entries: [(number: Int64, entry: HistoryEntry)]) -> JSONObject {
    let next = entries.last.flatMap { $0.number > 1 ? $0.number : nil }
    return [
      "entries": .array(
        entries.map { number, entry in
          var json = entry.shown
          json["number"] = .integer(number)
          return .object(json)
        }),
      "next": .nullable(next),
    ]
  }
}
