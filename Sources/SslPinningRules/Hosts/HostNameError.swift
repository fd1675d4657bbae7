import CanonicalJSON

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
  /// A URL, or a name with a user, a port or a path: pins are for the host alone.
  case notHostAlone(String, has: Surplus)
  /// A `*` elsewhere than as the whole first label.
  case misplacedWildcard(String)
}

extension HostNameError {
  /// What stands beside a host, where a host alone is wanted.
  public enum Surplus: Hashable, Sendable {
    /// `https://host`
    case scheme
    /// `user@host`
    case user
    /// `host/path`
    case path
    /// `host:443`
    case port
  }

  /// The same, about the text as somebody wrote it: a pattern is read in parts.
  func about(_ text: String) -> HostNameError {
    if let surplus = Surplus(in: text) { return .notHostAlone(text, has: surplus) }
    return switch self {
    case .empty, .tooLong, .notHostAlone: self
    case .badLabel: .badLabel(text)
    case .badCharacter: .badCharacter(text)
    case .notASCII: .notASCII(text)
    case .malformedAddress: .malformedAddress(text)
    case .misplacedWildcard: .misplacedWildcard(text)
    }
  }
}

extension HostNameError.Surplus {
  /// What a text has that was no host; the first thing that a person would take away.
  fileprivate init?(in text: String) {
    let bytes = [UInt8](text.utf8)
    let colons = bytes.indices.filter { bytes[$0] == UInt8(ascii: ":") }
    if let first = colons.first, bytes[first...].starts(with: "://".utf8) {
      self = .scheme
    } else if bytes.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }) {
      self = .path
    } else if bytes.contains(UInt8(ascii: "@")) {
      self = .user
    } else if let last = colons.last,
      // More colons are an IPv6 address, whose port stands behind a bracket.
      colons.count == 1 ? last > 0 : bytes[..<last].last == UInt8(ascii: "]"),
      bytes[(last + 1)...].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    {
      self = .port
    } else {
      return nil
    }
  }

  fileprivate var text: String {
    switch self {
    case .scheme: "is a URL; hint: write the host alone, without a scheme"
    case .user: "has a user name; hint: write the host alone"
    case .path: "has a path; hint: write the host alone"
    case .port: "has a port; hint: write the host alone, pins hold for all its ports"
    }
  }
}

extension HostNameError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .empty: "empty host name"
    case .tooLong(let count): "host name of \(count) bytes; at most 253 are possible"
    case .badLabel(let text): "\(ForeignText(text)) has an empty or over-long label"
    case .badCharacter(let text): "\(ForeignText(text)) has a character that no host name contains"
    case .notASCII(let text):
      "\(ForeignText(text)) is not ASCII; hint: write its A-label form (xn--…)"
    case .malformedAddress(let text): "\(ForeignText(text)) looks like an IP address and is none"
    case .notHostAlone(let text, let surplus): "\(ForeignText(text)) \(surplus.text)"
    case .misplacedWildcard(let text):
      "\(ForeignText(text)) has a misplaced wildcard; hint: only *.name and **.name are patterns"
    }
  }
}
