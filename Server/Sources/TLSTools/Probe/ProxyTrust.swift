import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules

/// How a proxy that speaks TLS is told apart from whoever stands before it.
///
/// - TLS 1.2 or newer, and the proxy proves its key in the handshake. Nothing is asked of it before
///   ``refusal(of:host:port:at:)`` has found no fault.
/// - Its leaf's key must be one of `pins`, if there are any. Its chain must be valid and for its name, if
///   `anchors` are given. One of the two is always demanded.
package final class ProxyTrust: TLSContext, Sendable {
  package let context: OpenSSLObject
  private let pins: Set<SPKIPin>
  private let anchors: (@Sendable () -> ChainValidator)?
  private let identity: LoadedIdentity?

  /// - Parameters:
  ///   - pins: of the proxy's leaf; empty: its chain alone counts.
  ///   - anchors: what its chain has to end in; `nil`: its key alone counts. Asked for each connection.
  ///   - identity: what this client shows where it is asked for a certificate.
  package init(
    pins: Set<SPKIPin>, anchors: (@Sendable () -> ChainValidator)?, identity: ServerIdentity?
  ) throws(CertificateError) {
    OpenSSLErrors.clear()
    guard !pins.isEmpty || anchors != nil, let pointer = SSL_CTX_new(TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    self.pins = pins
    self.anchors = anchors
    self.identity = if let identity { try LoadedIdentity(identity) } else { nil }
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLSVersion.tls12.rawValue), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    // Judged after the handshake, with a reason that can be told.
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
  }

  /// Sets a connection up as this proxy's client.
  func configure(_ session: OpaquePointer, host: String) {
    SSL_set_connect_state(session)
    session.requestServerName(host)
    _ = identity?.use(on: session)
  }

  /// Why the other side of a finished handshake is not the proxy; `nil` if it is.
  func refusal(
    of session: OpaquePointer, host: String, port: UInt16, at endpoint: Endpoint
  ) -> String? {
    guard let leaf = SSL_get0_peer_certificate(session),
      let certificate = try? Certificate(copying: leaf)
    else { return "it showed no certificate" }
    if !pins.isEmpty {
      guard let pin = try? SPKIPin(certificateDER: certificate.der) else {
        return "its key cannot be read"
      }
      guard pins.contains(pin) else { return "it shows another key (\(pin.base64))" }
    }
    guard let anchors else { return nil }
    do throws(ProbeError) {
      return try ProbedServer(
        session, of: ProbeTarget(host: host, port: port), at: endpoint, by: anchors(), time: nil
      ).complaint
    } catch { return "\(error)" }
  }
}

extension ProxyTrust: Hashable {
  package static func == (one: ProxyTrust, other: ProxyTrust) -> Bool { one === other }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
