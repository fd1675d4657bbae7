import Foundation

/// One name a server certificate is good for: an entry of subjectAltName (RFC 5280 section
/// 4.2.1.6).
///
/// - A DNS name is ASCII letters, digits, `-` and `_` in labels of 1…63 bytes, at most 253 bytes,
///   with `*` only as the whole first label. Nothing else reaches OpenSSL's extension syntax, in
///   which a comma would begin another name.
/// - What reads as an IP address is one: a DNS entry `127.0.0.1` would match nothing.
public enum SubjectName: Sendable, Hashable {
  case dns(String)
  /// In its canonical text form.
  case ipv4(String)
  /// In its canonical text form (RFC 5952).
  case ipv6(String)

  /// Reads `www.example.com`, `*.example.com`, `127.0.0.1`, `::1` or `[::1]`.
  public init(_ text: String) throws(CertificateError) {
    let bare =
      text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
    if let canonical = NumericAddress.canonicalIPv4(text) {
      self = .ipv4(canonical)
    } else if let canonical = NumericAddress.canonicalIPv6(bare) {
      self = .ipv6(canonical)
    } else if Self.isDNSName(text) {
      self = .dns(text.lowercased())
    } else {
      throw .invalidName(text)
    }
  }

  /// The name as text, the way a user writes it.
  public var text: String {
    switch self {
    case .dns(let name), .ipv4(let name), .ipv6(let name): name
    }
  }

  /// The entry in OpenSSL's extension syntax.
  var extensionValue: String {
    switch self {
    case .dns(let name): "DNS:\(name)"
    case .ipv4(let address), .ipv6(let address): "IP:\(address)"
    }
  }

  private static func isDNSName(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard (1...253).contains(bytes.count) else { return false }
    let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for (index, label) in labels.enumerated() {
      if index == 0, labels.count > 1, label.elementsEqual([UInt8(ascii: "*")]) { continue }
      guard (1...63).contains(label.count), label.allSatisfy(isNameByte) else { return false }
    }
    // A last label of digits only is an address somebody mistyped, never a name (RFC 3696).
    return labels.last?.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == false
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
