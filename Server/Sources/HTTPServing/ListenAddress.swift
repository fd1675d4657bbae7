import Foundation
import SslPinningRules

/// Where the server listens: an IP address and a port, `127.0.0.1:7500` or `[::1]:7500`.
///
/// - Addresses only, no names: what a name resolves to can change under a server. `localhost` alone
///   is read as 127.0.0.1.
/// - An empty host, as in `:7500`, and `[::]` are every address of the machine, IPv4 and IPv6, as in
///   the reference server.
public struct ListenAddress: Hashable, Sendable {
  /// The address to bind in its canonical text, IPv6 without brackets.
  public let host: String
  /// The port; 0 lets the system choose one.
  public let port: UInt16

  /// The default of the field: 127.0.0.1:7500.
  public static let standard = ListenAddress(host: "127.0.0.1", port: 7500)

  private init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// The same address with another port.
  func with(port: UInt16) -> ListenAddress { ListenAddress(host: host, port: port) }

  /// Reads `address:port`; `nil` where the text is none.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else { return nil }
    let host = String(text[..<colon])
    let digits = text[text.index(after: colon)...]
    guard (1...5).contains(digits.utf8.count),
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let port = UInt16(digits)
    else { return nil }
    guard !host.isEmpty else {
      self.init(host: "::", port: port)
      return
    }
    guard host.lowercased() != "localhost" else {
      self.init(host: "127.0.0.1", port: port)
      return
    }
    // Without brackets nobody can tell an IPv6 address from its port.
    guard !host.contains(":") || host.hasPrefix("["), let name = try? HostName(host),
      case .address(let address) = name
    else { return nil }
    self.init(host: address.description, port: port)
  }

  /// Whether the address is IPv6.
  public var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

  /// Whether it is every address of the machine, of both families.
  public var isEveryAddress: Bool { host == "::" }

  /// Whether one socket at each cannot be had at the same time: the port is the same, and one address is the
  /// other or has it in it.
  package func collides(with other: ListenAddress) -> Bool {
    func has(_ one: ListenAddress, _ other: ListenAddress) -> Bool {
      one.host == other.host || one.isEveryAddress || one.host == "0.0.0.0" && !other.isIPv6
    }
    return port != 0 && port == other.port && (has(self, other) || has(other, self))
  }

  /// Every address of the IPv4 family, with the same port.
  var everyIPv4Address: ListenAddress { ListenAddress(host: "0.0.0.0", port: port) }

  /// Whether only this machine can reach it.
  public var isLoopback: Bool { host == "::1" || host.hasPrefix("127.") }
}

extension ListenAddress: CustomStringConvertible {
  public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
