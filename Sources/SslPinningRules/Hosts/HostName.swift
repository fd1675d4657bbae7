import CanonicalJSON

/// A host as a connection names it: a DNS name in A-label form, or an IP address.
///
/// - DNS names are lower-cased ASCII; one trailing dot is dropped; labels are 1 to 63 bytes of
///   letters, digits, `-` and `_`, 253 bytes in all (RFC 1123 §2.1; `_` occurs in practice).
/// - A text that looks like an address is an address or invalid: `1.2.3.4` is never a DNS name, and
///   neither is any name whose last label is all digits (WHATWG URL "ends in a number").
/// - An IPv4-mapped IPv6 address is an IPv6 address and never equals the IPv4 one.
/// - Names are compared as bytes. By Swift's `String` equality, KELVIN SIGN equals K.
public enum HostName: Hashable, Sendable {
  /// Lower-case ASCII labels joined by dots, without a trailing dot.
  case name(DNSName)
  /// An IP address in network byte order.
  case address(IPAddress)

  /// Reads a host from a URL or a certificate: a name, an IPv4 address in dotted decimal, or an IPv6
  /// address with or without brackets.
  ///
  /// - Throws: ``HostNameError``. Names with non-ASCII characters are refused: the caller converts
  ///   them to A-labels, because two converters that disagree would pin two different hosts.
  public init(_ text: String) throws(HostNameError) {
    do throws(HostNameError) { try self.init(reading: text) } catch { throw error.about(text) }
  }

  private init(reading text: String) throws(HostNameError) {
    let bytes = text.utf8
    if bytes.contains(UInt8(ascii: ":")) || bytes.first == UInt8(ascii: "[") {
      guard let address = IPAddress(v6: text) else { throw .malformedAddress(text) }
      self = .address(address)
    } else if let address = IPAddress(v4: text) {
      self = .address(address)
    } else {
      self = .name(try DNSName(text))
    }
  }
}

extension HostName: CustomStringConvertible {
  /// The canonical spelling: lower-case, no trailing dot, IPv6 without brackets.
  public var description: String {
    switch self {
    case .name(let name): name.description
    case .address(let address): address.description
    }
  }
}

/// A DNS name in A-label form: lower-case ASCII, no trailing dot. See ``HostName`` for the rules.
public struct DNSName: Hashable, Sendable {
  /// The name's bytes.
  public var bytes: ArraySlice<UInt8> { whole[Int(start)...] }

  /// Shared by a name and its parents, so that a search for a host's entry copies nothing.
  private let whole: [UInt8]
  private let start: UInt8

  /// Reads and normalises a name.
  ///
  /// - Throws: ``HostNameError``.
  public init(_ text: String) throws(HostNameError) {
    var bytes = Array(text.utf8)
    let lowerCase = Self.lowerCase
    for place in bytes.indices {
      let byte = bytes[place]
      bytes[place] = lowerCase[Int(byte)]
      guard bytes[place] == 0 else { continue }
      switch byte {
      case UInt8(ascii: "*"): throw .misplacedWildcard(text)
      case 0x80...: throw .notASCII(text)
      default: throw .badCharacter(text)
      }
    }
    if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw .empty }
    guard bytes.count <= 253 else { throw .tooLong(bytes.count) }
    var last = 0
    for byte in bytes {
      guard byte == UInt8(ascii: ".") else {
        last += 1
        continue
      }
      guard (1...63).contains(last) else { throw .badLabel(text) }
      last = 0
    }
    guard (1...63).contains(last) else { throw .badLabel(text) }
    // "1.2.3", "0x7f.1" and the like: some resolvers read them as addresses.
    guard !Self.looksNumeric(bytes.suffix(last)) else { throw .malformedAddress(text) }
    (whole, start) = (bytes, 0)
  }

  private init(_ whole: [UInt8], from start: Int) {
    self.whole = whole
    // A name has at most 253 bytes.
    self.start = UInt8(start)
  }

  /// The name without its first label, or `nil` if it has only one.
  public var parent: DNSName? {
    guard let dot = bytes.firstIndex(of: UInt8(ascii: ".")) else { return nil }
    return DNSName(whole, from: dot + 1)
  }

  /// Each byte of a name as it is kept; 0 for what no name has.
  private static let lowerCase: [UInt8] = (UInt8.min ... .max).map { byte in
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
      byte
    default: 0
    }
  }

  private static func looksNumeric(_ label: ArraySlice<UInt8>) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    if label.allSatisfy({ digits.contains($0) }) { return true }
    guard label.first == UInt8(ascii: "0"), label.starts(with: "0x".utf8) else { return false }
    let hex = UInt8(ascii: "a")...UInt8(ascii: "f")
    return label.dropFirst(2).allSatisfy { digits.contains($0) || hex.contains($0) }
  }
}

extension DNSName: CustomStringConvertible {
  public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension DNSName {
  public static func == (left: DNSName, right: DNSName) -> Bool { left.bytes == right.bytes }

  /// All bytes at once: an array hashes each by itself. Saves a fourteenth of the instructions of a verdict, and of
  /// reading a list.
  public func hash(into hasher: inout Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    // No name has this byte: where the name ends is hashed, too.
    hasher.combine(UInt8(0xff))
  }
}

/// Why a text is neither a DNS name nor an IP address, nor a pattern over them.
public enum HostNameError: Error, Hashable, Sendable {
  /// Empty, or only a dot.
  case empty
  /// Longer than the 253 bytes of RFC 1035 §2.3.4.
  case tooLong(Int)
  /// A label that is empty or longer than 63 bytes.
  case badLabel(String)
  /// A byte that no host name contains.
  case badCharacter(String)
  /// A character outside ASCII.
  case notASCII(String)
  /// Looks like an IP address but is invalid.
  case malformedAddress(String)
  /// A URL, or a name with a user, a port or a path: pins are only for hosts.
  case notHostAlone(String, has: Surplus)
  /// A `*` that is not the whole first label.
  case misplacedWildcard(String)
}

extension HostNameError {
  /// What a text has besides the host.
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

  /// The same error about the whole text: a pattern is read in parts.
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
  /// What an invalid text has besides a host; the first thing that a person should remove.
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
      // More colons mean an IPv6 address, whose port follows a bracket.
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
