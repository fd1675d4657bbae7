import CSslPinningOpenSSL
import TLSTools

/// The client side of TLS for a man in the middle: it takes any certificate. Hazard: nothing that
/// goes through it is safe from anybody; it is for attacks in tests and the demo alone.
final class UnverifiedTLSClient: TLSContext, Sendable {
  let context: OpenSSLObject

  init() throws(CertificateError) {
    OpenSSLErrors.clear()
    guard let pointer = SSL_CTX_new(TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_MODE,
      Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
    let protocols = [8] + Array("http/1.1".utf8)
    SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count))
  }

  /// Runs the handshake, asking for `serverName` unless that is an address (RFC 6066 section 3).
  func secure(
    _ stream: ByteStream, serverName: String, until deadline: Deadline
  ) throws(SocketError) {
    try stream.startTLS(self) { session in
      SSL_set_connect_state(session)
      session.requestServerName(serverName)
    }
    try stream.handshake(until: deadline)
  }
}
