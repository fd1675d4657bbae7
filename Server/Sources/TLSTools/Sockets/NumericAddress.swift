import Foundation

/// IP addresses as text.
///
/// Strict forms only (`inet_pton`): `127.1`, `0x7f000001` and zone suffixes are names to resolve or
/// mistakes, never addresses.
package enum NumericAddress {
  /// The canonical dotted form, or nil when the text is no IPv4 address.
  package static func canonicalIPv4(_ text: String) -> String? { canonical(text, AF_INET) }

  /// The canonical form (RFC 5952), or nil when the text is no IPv6 address.
  static func canonicalIPv6(_ text: String) -> String? { canonical(text, AF_INET6) }

  /// The canonical form of either family, or nil for a name.
  static func canonical(_ text: String) -> String? { canonicalIPv4(text) ?? canonicalIPv6(text) }

  private static func canonical(_ text: String, _ family: Int32) -> String? {
    // inet_pton reads to the first NUL; what follows one must not be lost.
    guard !text.utf8.contains(0) else { return nil }
    var address = [UInt8](repeating: 0, count: 16)
    guard inet_pton(family, text, &address) == 1 else { return nil }
    var buffer = [CChar](repeating: 0, count: 64)
    guard inet_ntop(family, &address, &buffer, socklen_t(buffer.count)) != nil else { return nil }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
