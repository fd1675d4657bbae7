/// Why a text is neither a DNS name nor an IP address, nor a pattern over them.
public enum HostNameError: Error, Hashable, Sendable {
  /// Nothing, or nothing but a dot.
  case empty
  /// Longer than the 253 bytes of RFC 1035 §2.3.4.
  case tooLong(Int)
  /// A label that is empty or longer than 63 bytes.
  case badLabel(String)
  /// A byte that no host name contains.
  case badCharacter(String)
  /// A character outside ASCII.
  case notASCII(String)
  /// Looks like an IP address and is none.
  case malformedAddress(String)
  /// A `*` elsewhere than as the whole first label.
  case misplacedWildcard(String)
}

extension HostNameError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .empty: "empty host name"
    case .tooLong(let count): "host name of \(count) bytes; at most 253 are possible"
    case .badLabel(let text): "\(Self.quoted(text)) has an empty or over-long label"
    case .badCharacter(let text): "\(Self.quoted(text)) has a character that no host name contains"
    case .notASCII(let text):
      "\(Self.quoted(text)) is not ASCII; hint: write its A-label form (xn--…)"
    case .malformedAddress(let text): "\(Self.quoted(text)) looks like an IP address and is none"
    case .misplacedWildcard(let text):
      "\(Self.quoted(text)) has a misplaced wildcard; hint: only *.name and **.name are patterns"
    }
  }

  /// Host names come from outside: control characters must not reach a terminal, nor a megabyte a
  /// log.
  private static func quoted(_ text: String) -> String {
    let shown = text.unicodeScalars.prefix(80).map { $0.escaped(asASCII: true) }.joined()
    return "\"\(shown)\(text.unicodeScalars.count > 80 ? "…" : "")\""
  }
}
