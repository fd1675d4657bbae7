import CSslPinningOpenSSL
import SslPinningPlatform
import TLSTools

/// The server side of TLS: which identity to show, and OpenSSL's settings.
///
/// The identity is chosen in every full handshake by the client's server name, so a context works for a
/// single identity and for a man in the middle who forges them.
final class TLSServerContext: TLSContext, @unchecked Sendable {
  let context: OpenSSLObject
  private let choose: @Sendable (_ serverName: String?) -> ServerIdentity?
  private let loaded = Locked<LoadedIdentity?>(nil)

  /// - Parameter choose: returns the identity for a server name (nil if the client sent none), or nil to
  ///   end the handshake.
  init(
    options: TLSServerOptions,
    choose: @escaping @Sendable (_ serverName: String?) -> ServerIdentity?
  ) throws(CertificateError) {
    self.choose = choose
    OpenSSLErrors.clear()
    guard let pointer = SSL_CTX_new(TLS_server_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    apply(options, to: pointer)
    SSL_CTX_set_alpn_select_cb(pointer, selectHTTP11, nil)
    // The streams that use this context hold it, so the pointer outlives every handshake.
    SSL_CTX_set_cert_cb(pointer, chooseIdentity, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Accepts only clients with a certificate from these anchors.
  func admit(_ clients: ChainValidator) {
    SSL_CTX_set_verify(
      context.pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    // Test authorities only issue certificates for servers.
    SSL_CTX_set_purpose(context.pointer, X509_PURPOSE_ANY)
    X509_STORE_up_ref(clients.storePointer)
    SSL_CTX_set_cert_store(context.pointer, clients.storePointer)
  }

  /// Lets clients of `other` resume here: both then use the same ticket keys.
  func shareTicketKeys(of other: TLSServerContext) {
    var keys = [UInt8](repeating: 0, count: 80)
    let count = keys.count
    SSL_CTX_ctrl(other.context.pointer, SSL_CTRL_GET_TLSEXT_TICKET_KEYS, count, &keys)
    SSL_CTX_ctrl(context.pointer, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, count, &keys)
  }

  private func apply(_ options: TLSServerOptions, to pointer: OpaquePointer) {
    if options.minimum < .tls12 { SSL_CTX_set_security_level(pointer, 0) }
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(options.minimum.rawValue), nil)
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(options.maximum.rawValue), nil)
    // Partial writes: a slow reader must not hold a whole answer inside OpenSSL.
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_MODE,
      Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER),
      nil)
    SSL_CTX_set_options(pointer, sslOption(30))  // SSL_OP_NO_RENEGOTIATION
    if options.sessionTickets {
      let name = Array("ssl-pinning".utf8)
      SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count))
    } else {
      SSL_CTX_set_options(pointer, sslOption(14))  // SSL_OP_NO_TICKET
      SSL_CTX_set_num_tickets(pointer, 0)
      SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    }
  }

  fileprivate func present(on session: OpaquePointer) -> Bool {
    let name = SSL_get_servername(session, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    guard let identity = choose(name) else { return false }
    let ready = loaded.withLock { (loaded) -> LoadedIdentity? in
      if let loaded, loaded.certificates == [identity.leaf] + identity.intermediates {
        return loaded
      }
      loaded = try? LoadedIdentity(identity)
      return loaded
    }
    return ready?.use(on: session) ?? false
  }
}

private func sslOption(_ bit: UInt64) -> UInt64 { 1 << bit }

private func chooseIdentity(_ session: OpaquePointer?, _ own: UnsafeMutableRawPointer?) -> Int32 {
  guard let session, let own else { return 0 }
  let context = Unmanaged<TLSServerContext>.fromOpaque(own).takeUnretainedValue()
  return context.present(on: session) ? 1 : 0
}

/// Chooses `http/1.1`, the only protocol here; a client that offers only others gets an alert
/// (RFC 7301 section 3.2).
private func selectHTTP11(
  _: OpaquePointer?, _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  _ outLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ length: UInt32,
  _: UnsafeMutableRawPointer?
) -> Int32 {
  let wanted = Array("http/1.1".utf8)
  var index = 0
  while let offered, index < Int(length) {
    let size = Int(offered[index])
    guard index + 1 + size <= Int(length) else { break }
    if UnsafeBufferPointer(start: offered + index + 1, count: size).elementsEqual(wanted) {
      out?.pointee = offered + index + 1
      outLength?.pointee = UInt8(size)
      return SSL_TLSEXT_ERR_OK
    }
    index += 1 + size
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// The TLS settings of a `LocalTLSServer`.
public struct TLSServerOptions: Sendable {
  /// The oldest version it accepts. Below 1.2 OpenSSL's security level is dropped as well.
  public var minimum: TLSVersion
  /// The newest version it accepts.
  public var maximum: TLSVersion
  /// Whether it issues session tickets, so that clients can resume. Hazard for clients: a resumed
  /// handshake carries no certificate, so nothing is checked again.
  public var sessionTickets: Bool

  public init(
    minimum: TLSVersion = .tls12, maximum: TLSVersion = .tls13, sessionTickets: Bool = true
  ) {
    self.minimum = minimum
    self.maximum = maximum
    self.sessionTickets = sessionTickets
  }
}
