/// A text that must not be seen: it prints as `***`, wherever it ends up in a message.
///
/// Hazard: ``revealed`` is the text itself; whoever asks for it keeps it out of logs and messages.
public struct Secret: Sendable, Hashable {
  /// The text.
  public let revealed: String

  /// A secret.
  public init(_ text: String) { revealed = text }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// What stands for a secret.
  public static let mask = "***"

  public var description: String { Self.mask }
  public var debugDescription: String { Self.mask }
  // `dump` and `String(reflecting:)` of a value around it go by the mirror.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The name of a data source without what must not be seen.
///
/// - In a URL the password, which ends at the last `@` before the host: passwords contain `@`, `:`
///   and `/` that nobody encoded, and masking more than the password is no harm.
/// - In a query, and in libpq's `key=value` form (PostgreSQL 15 §34.1.1.1), the value of every key
///   that names a secret. A value in quotes ends with its quote.
public struct MaskedDSN: Sendable, Hashable, CustomStringConvertible {
  /// The text, safe to be shown.
  public let description: String

  /// Masks a name.
  public init(_ dsn: String) {
    if let scheme = dsn.firstRange(of: "://") {
      let (head, rest) = (dsn[..<scheme.upperBound], dsn[scheme.upperBound...])
      let query = rest.lastIndex(of: "@").map { rest[$0...] } ?? rest[...]
      let start = query.firstIndex(of: "?") ?? query.endIndex
      description =
        head + Self.authority(rest[..<start]) + Self.masked(rest[start...], separators: "&?;")
    } else {
      description = Self.masked(dsn[...], separators: " \t\n")
    }
  }

  private static func authority(_ text: Substring) -> String {
    guard let end = text.lastIndex(of: "@") else { return String(text) }
    let user = text[..<end]
    guard let colon = user.firstIndex(of: ":") else { return String(text) }
    return user[...colon] + Secret.mask + text[end...]
  }

  private static let secrets = ["password", "passwd", "sslpassword", "pwd", "secret", "token"]

  /// The pairs of `key=value`, secrets masked.
  private static func masked(_ text: Substring, separators: String) -> String {
    var out = ""
    var rest = text
    while let first = rest.first {
      if separators.contains(first) {
        out.append(rest.removeFirst())
        continue
      }
      let key = rest.prefix { $0 != "=" && !separators.contains($0) }
      rest = rest.dropFirst(key.count)
      out += key
      // libpq allows blanks around the sign.
      let gap = rest.prefix { $0 == " " && separators.contains(" ") }
      guard rest.dropFirst(gap.count).first == "=" else { continue }
      rest = rest.dropFirst(gap.count + 1)
      let after = rest.prefix { $0 == " " && separators.contains(" ") }
      rest = rest.dropFirst(after.count)
      let value = value(rest, separators: separators)
      rest = rest.dropFirst(value.count)
      out += gap + "=" + after + (secrets.contains(key.lowercased()) ? Secret.mask[...] : value)
    }
    return out
  }

  private static func value(_ text: Substring, separators: String) -> Substring {
    let isQuoted = text.first == "'"
    var isEscaped = false
    var end = text.startIndex
    for index in text.indices {
      end = text.index(after: index)
      let character = text[index]
      if isEscaped {
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else if isQuoted {
        if character == "'", index != text.startIndex { return text[..<end] }
      } else if separators.contains(character) {
        return text[..<index]
      }
    }
    return text[..<end]
  }
}
