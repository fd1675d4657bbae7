import SslPinningRules

/// Another place from which endpoints are looked at: an HTTP proxy that tunnels (RFC 9110 §9.3.6).
///
/// - A man in the middle near this server shows one key here and another there, which is what more
///   than one place to look from is for.
/// - So the way there must not be his: over TLS to a proxy that proves itself, or in clear text on this
///   machine alone.
public struct VantagePoint: Sendable, Hashable {
  /// How a proxy proves that it is the one.
  public struct Security: Sendable, Hashable {
    /// The SPKI pins of its leaf; empty: its chain alone counts.
    public var pins: [SPKIPin]
    /// A PEM file with the only anchors of its chain. Without pins, `nil` means the system's; with
    /// pins, that its chain does not count.
    public var anchors: String?
    /// A PEM file with the certificate that this server shows to the proxy, and its chain.
    public var certificate: String?
    /// The PEM file with that certificate's key.
    public var privateKey: String?

    /// A proof.
    public init(
      pins: [SPKIPin] = [], anchors: String? = nil, certificate: String? = nil,
      privateKey: String? = nil
    ) {
      self.pins = pins
      self.anchors = anchors
      self.certificate = certificate
      self.privateKey = privateKey
    }
  }

  /// Its name in logs, alerts and the console; never ``Observation/direct``.
  public var name: String
  /// The proxy.
  public var host: String
  /// The proxy's port.
  public var port: UInt16
  /// How it proves itself; `nil`: it is spoken to in clear text, on this machine.
  public var security: Security?

  /// A vantage point.
  public init(name: String, host: String, port: UInt16, security: Security? = nil) {
    self.name = name
    self.host = host
    self.port = port
    self.security = security
  }
}
