import Foundation
import SslPinningRules

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

  /// Whether only this machine has it.
  package static func isLoopback(_ text: String) -> Bool {
    guard let bytes = bytes(text) else { return false }
    return bytes.count == 4
      ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
  }

  private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [255, 255]
}

/// The proxies whose word counts about who called them.
///
/// - `X-Forwarded-For` grows on its right end: each proxy adds who called it. So it is read from the right,
///   as long as whoever wrote the next entry is one of these; what stands left of that is a stranger's.
/// - A caller that is none of these is who it is, whatever it forwards.
/// - An entry that is no address ends the reading: the last address that could be believed counts.
package struct TrustedProxies: Sendable, Equatable {
  static let field = "X-Forwarded-For"

  let networks: [AddressNetwork]

  package init(networks: [AddressNetwork] = []) { self.networks = networks }

  var isEmpty: Bool { networks.isEmpty }

  /// Whether this address is one of them.
  func contains(_ address: String) -> Bool {
    guard !isEmpty, let bytes = ClientAddress.bytes(address) else { return false }
    return networks.contains { $0.contains(bytes) }
  }

  /// Who called, where `peer` is the other side of the connection.
  ///
  /// - Parameter forwarded: the field's value, several lines joined by commas in their order.
  func client(_ peer: String, forwarded: String?) -> String {
    var client = peer
    var rest = forwarded?.split(separator: ",", omittingEmptySubsequences: false) ?? []
    while contains(client), let entry = rest.popLast(), let address = Self.address(entry) {
      client = address
    }
    return client
  }

  /// The address of an entry; some proxies add the port.
  private static func address(_ entry: Substring) -> String? {
    var text = entry.drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]"), isPort(text[text.index(after: end)...]) else {
        return nil
      }
      text = text[text.index(after: text.startIndex)..<end]
      guard text.utf8.contains(UInt8(ascii: ":")) else { return nil }
    } else if let colon = text.firstIndex(of: ":"), text.lastIndex(of: ":") == colon {
      guard isPort(text[colon...]) else { return nil }
      text = text[..<colon]
    }
    return ClientAddress.bytes(String(text)) == nil ? nil : String(text)
  }

  private static func isPort(_ text: Substring) -> Bool {
    guard !text.isEmpty else { return true }
    return text.first == ":" && (2...6).contains(text.utf8.count)
      && text.utf8.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

/// An address, or all addresses of a network: `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32`.
public struct AddressNetwork: Hashable, Sendable {
  /// The network's first address.
  public let address: IPAddress
  /// How many of its bits every address of the network has in common with it.
  public let prefix: Int

  /// Why a text is none.
  package enum Fault: Error, Equatable {
    /// It is no address, or its prefix is none.
    case unreadable
    /// Bits behind the prefix are set: this is the network that the address is in.
    case insideOf(AddressNetwork)
    /// It is every address there is, or a large part of them: shorter than /8, of IPv6 than /7.
    case everything
  }

  private init(address: IPAddress, prefix: Int) {
    self.address = address
    self.prefix = prefix
  }

  /// Reads a text.
  package init(_ text: String) throws(Fault) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard let bytes = parts.first.flatMap({ ClientAddress.bytes(String($0)) }),
      let address = IPAddress(bytes: bytes), parts.count <= 2
    else { throw .unreadable }
    var prefix = bytes.count * 8
    if parts.count == 2 {
      // A mapped IPv4 address has its prefix counted from another beginning.
      guard let length = Self.length(parts[1]), length <= prefix,
        bytes.count == 16 || !parts[0].contains(":")
      else { throw .unreadable }
      prefix = length
    }
    guard prefix >= (bytes.count == 4 ? 8 : 7) else { throw .everything }
    let network = AddressNetwork(address: address, prefix: prefix)
    guard let first = IPAddress(bytes: network.masked(bytes)), first == address else {
      throw IPAddress(bytes: network.masked(bytes)).map {
        .insideOf(AddressNetwork(address: $0, prefix: prefix))
      } ?? .unreadable
    }
    self = network
  }

  private static func length(_ text: Substring) -> Int? {
    guard (1...3).contains(text.utf8.count),
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(text)
  }

  /// Whether an address of 4 or 16 bytes is in it.
  package func contains(_ bytes: [UInt8]) -> Bool {
    bytes.count == address.bytes.count && masked(bytes) == address.bytes
  }

  private func masked(_ bytes: [UInt8]) -> [UInt8] {
    bytes.enumerated().map { index, byte in
      let bits = min(8, max(0, prefix - 8 * index))
      return byte & UInt8(truncatingIfNeeded: 0xff00 >> bits)
    }
  }
}

extension AddressNetwork: CustomStringConvertible {
  public var description: String {
    prefix == address.bytes.count * 8 ? "\(address)" : "\(address)/\(prefix)"
  }
}
