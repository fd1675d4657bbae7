import COpenSSL
import Pinning
import PinningPlatform

/// Judges the certificates of a finished handshake: the chain for itself, the name for itself.
///
/// By the pinned clients' own settings and name check (``VerifySettings``, ``HostCheck``): what is
/// published as trusted is trusted there.
struct ChainJudge {
  let anchors: TrustAnchors
  /// Unix seconds; nil is the machine's clock.
  let time: Int64?

  /// - Throws: `handshake` when the server showed no certificate at all.
  func judge(
    _ session: OpaquePointer, of target: ProbeTarget, at address: Endpoint
  ) throws(ProbeError) -> ProbeResult {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let leaf = SSL_get0_peer_certificate(session) else {
      throw .handshake(reason: "the server showed no certificate")
    }
    let sent = SSL_get_peer_cert_chain(session)
    do throws(CertificateError) {
      let (verification, path) = try verify(leaf, sent: sent)
      return ProbeResult(
        target: target, address: address,
        tlsVersion: SSL_get_version(session).map { String(cString: $0) } ?? "",
        cipher: SSL_get_current_cipher(session).flatMap { SSL_CIPHER_get_name($0) }
          .map { String(cString: $0) } ?? "",
        leaf: ProbedCertificate(try Certificate(copying: leaf)),
        presented: try Self.certificates(in: sent), validated: path, verification: verification,
        nameMatches: (try? HostName(target.host)).map { HostCheck.matches(leaf, $0) } ?? false)
    } catch { throw .local(reason: error.description) }
  }

  private func verify(
    _ leaf: OpaquePointer, sent: OpaquePointer?
  ) throws(CertificateError) -> (ProbeResult.Verification, [ProbedCertificate]?) {
    guard let context = X509_STORE_CTX_new() else { throw Self.outOfMemory }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, anchors.store.pointer, leaf, sent) == 1,
      anchors.settings.apply(to: X509_STORE_CTX_get0_param(context), at: time)
    else { throw Self.outOfMemory }
    let isValid = X509_verify_cert(context) == 1
    var code = X509_STORE_CTX_get_error(context)
    if !isValid, code == X509_V_OK { code = X509_V_ERR_UNSPECIFIED }
    OpenSSLErrors.clear()
    let verification = ProbeResult.Verification(
      code: code, reason: String(cString: X509_verify_cert_error_string(Int(code))),
      depth: Int(X509_STORE_CTX_get_error_depth(context)))
    guard isValid, code == X509_V_OK else { return (verification, nil) }
    return (verification, try Self.certificates(in: X509_STORE_CTX_get0_chain(context)))
  }

  private static func certificates(
    in stack: OpaquePointer?
  ) throws(CertificateError) -> [ProbedCertificate] {
    var found: [ProbedCertificate] = []
    for index in 0..<max(0, OPENSSL_sk_num(stack)) {
      guard let x509 = OPENSSL_sk_value(stack, index) else { continue }
      found.append(ProbedCertificate(try Certificate(copying: OpaquePointer(x509))))
    }
    return found
  }

  private static var outOfMemory: CertificateError {
    .openSSL(operation: "preparing verification", reason: OpenSSLErrors.drain())
  }
}
