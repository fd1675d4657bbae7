import Foundation

/// A caller's numeric address, as limits take it.
package enum ClientAddress {
  /// Its 4 or 16 bytes; an IPv4 address that IPv6 carries is the IPv4 one. `nil` where it is no address.
  static func bytes(_ text: String) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET6, text, &bytes) == 1 {
      return bytes.starts(with: mappedPrefix) ? Array(bytes.suffix(4)) : bytes
    }
    return inet_pton(AF_INET, text, &bytes) == 1 ? Array(bytes.prefix(4)) : nil
  }

  /// What counts as one caller: an IPv6 client has at least a /64 to itself. What is no address counts
  /// as it is written.
  static func bucket(_ text: String) -> [UInt8] {
    guard let bytes = bytes(text) else { return Array(text.utf8) }
    return Array(bytes.prefix(bytes.count == 16 ? 8 : 4))
  }

  /// Whether only this machine has it.
  package static func isLoopback(_ text: String) -> Bool {
    guard let bytes = bytes(text) else { return false }
    return bytes.count == 4
      ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
  }

  private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [255, 255]
}
