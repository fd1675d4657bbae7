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
    case .badLabel(let text): "\"\(text)\" has an empty or over-long label"
    case .badCharacter(let text): "\"\(text)\" has a character that no host name contains"
    case .notASCII(let text): "\"\(text)\" is not ASCII; hint: write its A-label form (xn--…)"
    case .malformedAddress(let text): "\"\(text)\" looks like an IP address and is none"
    case .misplacedWildcard(let text):
      "\"\(text)\" has a misplaced wildcard; hint: only *.name and **.name are patterns"
    }
  }
}
