import CanonicalJSON

/// How an event becomes bytes, its line break included.
///
///     {"event":"key_added","level":"info","pin":"…","time":"2025-12-14T21:02:11Z"}
///     2025-12-14T21:02:11Z INFO  key_added pin=…
///
/// and pretty:
///
///     {
///       "level": "info",
///       …
///     }
///     2025-12-14T21:02:11Z INFO  key_added
///       pin     …
struct LogStyle: Sendable, Hashable {
  var format: LogFormat
  var isPretty: Bool

  func bytes(
    _ level: LogLevel, _ time: String, _ name: String, _ fields: [(name: String, value: String)]
  ) -> [UInt8] {
    switch format {
    case .json:
      let members = [("level", level.rawValue), ("time", time), ("event", name)] + fields
      return isPretty ? Self.indented(members) : Self.line(members)
    case .text:
      let head = "\(time) \(Self.padded(level.rawValue.uppercased(), to: 5)) \(Self.escaped(name))"
      return Array((head + (isPretty ? Self.rows(fields) : Self.pairs(fields)) + "\n").utf8)
    }
  }

  private static func line(_ members: [(String, String)]) -> [UInt8] {
    JSONValue.object(JSONObject(members.map { ($0.0, .string($0.1)) })).canonicalBytes + [0x0a]
  }

  private static func indented(_ members: [(String, String)]) -> [UInt8] {
    // Through an object, so that a name stands once here too.
    let object = JSONObject(members.map { ($0.0, .string($0.1)) })
    var out = Array("{\n".utf8)
    for (index, member) in object.enumerated() {
      out += Array("  ".utf8) + JSONValue.string(member.key).canonicalBytes + Array(": ".utf8)
      out += member.value.canonicalBytes
      out += Array((index == object.count - 1 ? "\n" : ",\n").utf8)
    }
    return out + Array("}\n".utf8)
  }

  private static func pairs(_ fields: [(name: String, value: String)]) -> String {
    fields.map { " \(escaped($0.name))=\(quoted($0.value))" }.joined()
  }

  private static func rows(_ fields: [(name: String, value: String)]) -> String {
    let width = fields.map { escaped($0.name).unicodeScalars.count }.max() ?? 0
    return fields.map { "\n  \(padded(escaped($0.name), to: width))  \(escaped($0.value))" }
      .joined()
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.unicodeScalars.count))
  }

  /// A value that a reader of `name=value` can take apart again.
  private static func quoted(_ value: String) -> String {
    let isPlain =
      !value.isEmpty
      && value.unicodeScalars.allSatisfy { $0 != " " && $0 != "\"" && $0 != "=" && $0 != "\\" }
    let text = escaped(value)
    return isPlain && text == value ? value : "\"\(escaped(value, quotes: true))\""
  }

  /// A text that stays on its line and moves no cursor.
  private static func escaped(_ text: String, quotes: Bool = false) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": out += "\\n"
      case "\r": out += "\\r"
      case "\t": out += "\\t"
      case "\\" where quotes: out += "\\\\"
      case "\"" where quotes: out += "\\\""
      default:
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned,
          .surrogate:
          out += scalar.escaped(asASCII: true)
        default: out.unicodeScalars.append(scalar)
        }
      }
    }
    return out
  }
}
