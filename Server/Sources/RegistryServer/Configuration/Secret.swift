import SslPinningPlatform
import SslPinningRules

/// A text that must not be seen: it prints as `***`, wherever it ends up in a message.
///
/// Hazard: ``revealed`` is the text itself; whoever asks for it keeps it out of logs and messages.
public struct Secret: Sendable, Hashable {
  /// The text.
  public let revealed: String

  /// How many bytes it needs so that nobody finds it by trying, who has one text that it signed.
  static let leastBytes = 16

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
///   and `/` that nobody encoded, and masking more than the password is no harm. Where a query and an `@` behind it
///   could as well be parts of one, all is masked: libpq takes `postgres://host/db?password=a@b`.
/// - In a query, and in libpq's `key=value` form (PostgreSQL 15 §34.1.1.1), the value of every key
///   but those that are known to name no secret: a misspelt `pasword` is one. A value in quotes ends with its quote.
/// - What is none of both, and may have been meant as such, has its password before an `@`, behind a colon that no
///   port follows, or behind the word for it.
public struct MaskedDSN: Sendable, Hashable, CustomStringConvertible {
  /// The text, safe to be shown.
  public let description: String

  /// Masks a name.
  public init(_ dsn: String) {
    if let scheme = dsn.firstRange(of: "://") {
      let (head, rest) = (dsn[..<scheme.upperBound], dsn[scheme.upperBound...])
      let at = rest.lastIndex(of: "@")
      if let user = at.map({ rest[..<$0] }), let mark = user.firstIndex(of: "?"),
        user[mark...].contains("=")
      {
        description = head + Secret.mask
        return
      }
      let query = at.map { rest[$0...] } ?? rest[...]
      let start = query.firstIndex(of: "?") ?? query.endIndex
      description =
        head + Self.authority(rest[..<start]) + Self.masked(rest[start...], separators: "&?;")
    } else {
      let text = Self.masked(dsn[...], separators: " \t\n")
      let user = text.lastIndex(of: "@").map { text[..<$0] }
      let isPath = text.first.map { "/.~".contains($0) } ?? true
      description =
        !isPath && user?.contains(":") == true
        ? Secret.mask + text.dropFirst(user?.count ?? 0) : text
    }
  }

  private static func authority(_ text: Substring) -> String {
    guard let end = text.lastIndex(of: "@") else { return withoutPassword(text) }
    let user = text[..<end]
    guard let colon = user.firstIndex(of: ":") else { return String(text) }
    return user[...colon] + Secret.mask + text[end...]
  }

  /// An authority without `@`: what stands behind a colon is a port, or the end of a password.
  private static func withoutPassword(_ text: Substring) -> String {
    let hosts = text.prefix { $0 != "/" }
    for host in hosts.split(separator: ",") {
      let port = host[(host.lastIndex(of: "]") ?? host.startIndex)...].drop { $0 != ":" }
      guard port.dropFirst().allSatisfy(\.isNumber) else {
        return text[..<port.startIndex] + ":" + Secret.mask
      }
    }
    return String(text)
  }

  private static let secrets = ["password", "passwd", "sslpassword", "pwd", "secret", "token"]
  /// Keys of libpq, and of Redis clients, that may be seen.
  private static let harmless: Set = [
    "host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "sslrootcert", "sslcert",
    "sslkey", "ca", "db", "application_name", "connect_timeout", "options", "passfile",
    "target_session_attrs", "channel_binding", "gssencmode", "client_encoding", "keepalives",
    "maintnotifications", "protocol", "client_name", "pool_size", "dial_timeout", "read_timeout",
    "write_timeout",
  ]

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
      guard rest.dropFirst(gap.count).first == "=" else {
        // The word for a secret, and no sign.
        guard secrets.contains(key.lowercased().filter(\.isLetter)), !gap.isEmpty else { continue }
        rest = rest.drop { separators.contains($0) }
        rest = rest.drop { !separators.contains($0) }
        out += gap + Secret.mask
        continue
      }
      rest = rest.dropFirst(gap.count + 1)
      let after = rest.prefix { $0 == " " && separators.contains(" ") }
      rest = rest.dropFirst(after.count)
      let value = value(rest, separators: separators)
      rest = rest.dropFirst(value.count)
      // What is no word is a part of a path. A URL may have letters percent-encoded.
      let isHarmless =
        harmless.contains(key.lowercased()) || key.isEmpty
        || !key.allSatisfy {
          $0.isLetter || $0.isHexDigit && key.contains("%") || "_-%".contains($0)
        }
      out += gap + "=" + after + (isHarmless ? value : Secret.mask[...])
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

/// What names an administrator's token where it must not be shown: 9 bytes of its hash, in base64url.
enum TokenID {
  /// The id of a token.
  static func of(_ token: String) -> String {
    StrictBase64.encode(Digest.sha256([UInt8](token.utf8)).prefix(9))
      .replacing("+", with: "-").replacing("/", with: "_")
  }

  /// Whether a text can be one.
  static func isOne(_ text: String) -> Bool {
    text.utf8.count == 12
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
