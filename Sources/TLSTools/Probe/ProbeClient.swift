import COpenSSL
import CPlatformShims

/// The client side of TLS for the probes of one thread.
///
/// - It lets every handshake through, because a bad certificate is what a probe is to report; the
///   judgement comes afterwards. Nothing is ever sent over the connection. Old versions and weak keys
///   are let through for the same reason; keys on the chain are judged by `ChainJudge`.
/// - Certificates are read in a library context of few algorithms (`pp_tls_library`), which halves the
///   cost of a handshake (ADR 9). Chains are judged outside of it.
/// - Not used by two threads at once.
final class ProbeClient: TLSContext, Sendable {
  let context: OpenSSLObject

  init() throws(CertificateError) {
    OpenSSLErrors.clear()
    // Without one it is OpenSSL's own, which does the same in more time.
    guard let pointer = SSL_CTX_new_ex(pp_tls_library(), nil, TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    SSL_CTX_set_security_level(pointer, 0)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLSVersion.tls10.rawValue), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    // One system call for all that the server sent, instead of two for each record.
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_READ_AHEAD, 1, nil)
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
    // OpenSSL would otherwise verify once more, against an empty store, and for nothing.
    SSL_CTX_set_cert_verify_callback(pointer, letThrough, nil)
  }
}

private func letThrough(_: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 { 1 }
