import TLSTools

/// How a `LocalTLSServer` speaks TLS.
public struct TLSServerOptions: Sendable {
  /// The oldest version it accepts. Below 1.2 OpenSSL's security level is dropped as well.
  public var minimum: TLSVersion
  /// The newest version it accepts.
  public var maximum: TLSVersion
  /// Whether it hands out session tickets and so lets clients resume. Hazard for clients: a resumed
  /// handshake carries no certificate, so nothing is judged anew.
  public var sessionTickets: Bool

  public init(
    minimum: TLSVersion = .tls12, maximum: TLSVersion = .tls13, sessionTickets: Bool = true
  ) {
    self.minimum = minimum
    self.maximum = maximum
    self.sessionTickets = sessionTickets
  }
}
