/// An IP address and a port to dial or to listen on.
public struct Endpoint: Sendable, Hashable, CustomStringConvertible {
  /// A numeric IPv4 or IPv6 address, without brackets.
  public let address: String
  public let port: UInt16

  /// - Parameter address: numeric; a name is never looked up, dialling one fails.
  public init(address: String, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// A port on 127.0.0.1.
  public static func loopback(_ port: UInt16) -> Endpoint {
    Endpoint(address: "127.0.0.1", port: port)
  }

  public var description: String {
    address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
  }
}
