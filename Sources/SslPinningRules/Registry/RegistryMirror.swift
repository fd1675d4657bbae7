import CanonicalJSON

/// Another URL of a registry's document, from its statement: asked where the app's own does not answer.
///
/// - `https`, and nothing in it that would be sent to somebody else's account: no user, no query, no
///   fragment. So a statement names places, never requests.
/// - At most ``most`` in a statement: whoever steals an online key must not point every client at more.
public struct RegistryMirror: Hashable, Sendable, CustomStringConvertible {
  /// The most mirrors that a statement may name.
  public static let most = 8
  static let longest = 2048

  /// The URL as the statement has it.
  public let description: String

  /// Reads a mirror's URL: `https://host[:port]/path` in printable ASCII, 2048 bytes at most.
  ///
  /// - Throws: ``DocumentFault/member(_:)``.
  public init(_ text: String) throws(DocumentFault) {
    let scheme = "https://"
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.longest, bytes.starts(with: scheme.utf8),
      bytes.allSatisfy({ (0x21...0x7e).contains($0) && !#"@?#\"<>^`{|}"#.utf8.contains($0) })
    else { throw .member("mirrors") }
    let rest = text.dropFirst(scheme.count)
    guard let slash = rest.firstIndex(of: "/"), rest.index(after: slash) < rest.endIndex,
      Self.isAuthority(rest[..<slash])
    else { throw .member("mirrors") }
    description = text
  }

  /// The mirrors of a statement; none where it does not name any.
  static func list(_ json: JSONValue?) throws(DocumentFault) -> [RegistryMirror] {
    guard let json else { return [] }
    guard let list = json.arrayValue, list.count <= most else { throw .member("mirrors") }
    var mirrors: [RegistryMirror] = []
    for element in list {
      guard let text = element.stringValue else { throw .member("mirrors") }
      let mirror = try RegistryMirror(text)
      guard !mirrors.contains(mirror) else { throw .member("mirrors") }
      mirrors.append(mirror)
    }
    return mirrors
  }

  private static func isAuthority(_ text: Substring) -> Bool {
    var host = text
    // Behind the bracket of an IPv6 address, or behind a name.
    if let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
      let port = text[text.index(after: colon)...]
      // As a port is written: `:080` is another text for the same, and there must be none.
      guard let number = UInt16(port), number > 0, "\(number)" == port else { return false }
      host = text[..<colon]
    }
    let isAddress6 = host.utf8.contains(UInt8(ascii: ":"))
    return isAddress6 == host.hasPrefix("[") && (try? HostName(String(host))) != nil
  }
}
