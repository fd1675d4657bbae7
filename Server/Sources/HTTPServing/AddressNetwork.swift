import SslPinningRules

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
  func contains(_ bytes: [UInt8]) -> Bool {
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
