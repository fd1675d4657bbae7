/// Another place from which endpoints are looked at: an HTTP proxy that tunnels (RFC 9110 §9.3.6).
///
/// A man in the middle near this server shows one key here and another there, which is what more
/// than one place to look from is for.
public struct VantagePoint: Sendable, Hashable {
  /// Its name in logs, alerts and the console; never ``Observation/direct``.
  public var name: String
  /// The proxy.
  public var host: String
  /// The proxy's port.
  public var port: UInt16

  /// A vantage point.
  public init(name: String, host: String, port: UInt16) {
    self.name = name
    self.host = host
    self.port = port
  }
}
