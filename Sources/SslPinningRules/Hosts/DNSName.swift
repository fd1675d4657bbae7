/// A DNS name in A-label form: lower-case ASCII, no trailing dot. See ``HostName`` for the rules.
public struct DNSName: Hashable, Sendable {
  /// The name's bytes.
  public let bytes: [UInt8]

  /// Reads and normalises a name.
  ///
  /// - Throws: ``HostNameError``.
  public init(_ text: String) throws(HostNameError) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): bytes.append(byte | 0x20)
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        bytes.append(byte)
      case UInt8(ascii: "*"): throw .misplacedWildcard(text)
      case 0x80...: throw .notASCII(text)
      default: throw .badCharacter(text)
      }
    }
    if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw .empty }
    guard bytes.count <= 253 else { throw .tooLong(bytes.count) }
    let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard labels.allSatisfy({ (1...63).contains($0.count) }) else { throw .badLabel(text) }
    // "1.2.3", "0x7f.1" and friends: some resolvers read them as addresses.
    guard let last = labels.last, !Self.looksNumeric(last) else { throw .malformedAddress(text) }
    self.bytes = bytes
  }

  private init(suffix: ArraySlice<UInt8>) { bytes = [UInt8](suffix) }

  /// The name without its first label, or `nil` where it has only one.
  public var parent: DNSName? {
    guard let dot = bytes.firstIndex(of: UInt8(ascii: ".")) else { return nil }
    return DNSName(suffix: bytes[(dot + 1)...])
  }

  private static func looksNumeric(_ label: ArraySlice<UInt8>) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    if label.allSatisfy({ digits.contains($0) }) { return true }
    guard label.starts(with: "0x".utf8) else { return false }
    let hex = UInt8(ascii: "a")...UInt8(ascii: "f")
    return label.dropFirst(2).allSatisfy { digits.contains($0) || hex.contains($0) }
  }
}

extension DNSName: CustomStringConvertible {
  public var description: String { String(decoding: bytes, as: UTF8.self) }
}
