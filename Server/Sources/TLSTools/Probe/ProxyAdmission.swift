import CSslPinningOpenSSL
import CSslPinningShims
import SslPinningPlatform
import SslPinningRules

/// How a proxy proves its identity over TLS, and whom it lets in: the other side of ``ProxyTrust``.
///
/// - TLS 1.3 alone. The handshake ends only for a client that proved to have the key of one of the pins; nothing that
///   it sends is read before. Names, dates and issuers of its certificate do not count.
/// - Nothing is resumed, so each connection brings its own proof, and there is no early data.
/// - A client that sends messages without end is ended (`pp_tls_refuse_floods`).
package final class ProxyAdmission: TLSContext, Sendable {
  package let context: OpenSSLObject
  private let identity: LoadedIdentity
  private let clients: Set<SPKIPin>

  /// - Parameters:
  ///   - identity: what clients are shown.
  ///   - clients: the keys of those that are let in.
  package init(
    showing identity: ServerIdentity, to clients: Set<SPKIPin>
  ) throws(CertificateError) {
    OpenSSLErrors.clear()
    guard let pointer = SSL_CTX_new(TLS_server_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    self.identity = try LoadedIdentity(identity)
    self.clients = clients
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLSVersion.tls13.rawValue), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    SSL_CTX_set_options(pointer, 1 << 14)  // SSL_OP_NO_TICKET
    SSL_CTX_set_num_tickets(pointer, 0)
    // Partial writes: a slow reader must not hold a whole answer inside OpenSSL.
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_MODE,
      Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    // The streams that use this context hold it, so the pointer outlives every handshake.
    SSL_CTX_set_cert_verify_callback(pointer, judge, Unmanaged.passUnretained(self).toOpaque())
    pp_tls_refuse_floods(pointer)
  }

  /// Runs the handshake of a connection that a client opened.
  ///
  /// - Returns: the pin of the key that the client proved to have.
  /// - Throws: ``SocketError`` if the client did not prove in time that it is one of those.
  package func admit(
    _ stream: ByteStream, until deadline: Deadline
  ) throws(SocketError) -> SPKIPin {
    try stream.startTLS(self) { session in
      SSL_set_accept_state(session)
      _ = identity.use(on: session)
    }
    try stream.handshake(until: deadline)
    guard let session = stream.session, let leaf = SSL_get0_peer_certificate(session),
      let pin = Self.pin(of: leaf)
    else { throw .closed(reason: "the client showed no certificate") }
    return pin
  }

  fileprivate func admits(_ leaf: OpaquePointer) -> Bool {
    guard let pin = Self.pin(of: leaf) else { return false }
    return clients.contains(pin)
  }

  private static func pin(of leaf: OpaquePointer) -> SPKIPin? {
    guard let certificate = try? Certificate(copying: leaf) else { return nil }
    return try? SPKIPin(certificateDER: certificate.der)
  }
}

/// Only the key is judged here: that the client has it, the handshake itself proves afterwards.
private func judge(_ store: OpaquePointer?, _ own: UnsafeMutableRawPointer?) -> Int32 {
  guard let store, let own, let leaf = X509_STORE_CTX_get0_cert(store) else { return 0 }
  let admission = Unmanaged<ProxyAdmission>.fromOpaque(own).takeUnretainedValue()
  guard admission.admits(leaf) else {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
    return 0
  }
  return 1
}
