import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules

/// Judges the certificates of a finished handshake: the chain for itself, the name for itself.
///
/// - By the pinned clients' own settings and name check (``VerifySettings``, ``HostCheck``): what is
///   published as trusted is trusted there.
/// - What is judged is read again from the bytes that were sent: the handshake itself read them in a
///   library context that knows too little (``ProbeClient``).
struct ChainJudge {
  /// What came of a chain, without the name.
  struct Outcome {
    let verification: ProbeResult.Verification
    /// From the leaf to the anchor, in DER; nil when no valid path was found.
    let path: [Certificate]?
  }

  let anchors: TrustAnchors
  /// Unix seconds; nil is the machine's clock.
  let time: Int64?

  /// - Throws: `handshake` when the server showed no certificate at all.
  func judge(
    _ session: OpaquePointer, of target: ProbeTarget, at address: Endpoint
  ) throws(ProbeError) -> ProbeResult {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let leaf = SSL_get0_peer_certificate(session) else { throw Self.nothingShown }
    do throws(CertificateError) {
      let presented = try Self.certificates(in: SSL_get_peer_cert_chain(session))
      let outcome = try verify(presented)
      return ProbeResult(
        target: target, address: address,
        tlsVersion: SSL_get_version(session).map { String(cString: $0) } ?? "",
        cipher: SSL_get_current_cipher(session).flatMap { SSL_CIPHER_get_name($0) }
          .map { String(cString: $0) } ?? "",
        leaf: ProbedCertificate(try Certificate(copying: leaf)),
        presented: presented.map { ProbedCertificate($0) },
        validated: outcome.path?.map { ProbedCertificate($0) },
        verification: outcome.verification,
        nameMatches: (try? HostName(target.host)).map { HostCheck.matches(leaf, $0) } ?? false)
    } catch { throw .local(reason: error.description) }
  }

  /// Looks for a valid path from the first of these certificates.
  func verify(_ presented: [Certificate]) throws(CertificateError) -> Outcome {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let stack = OPENSSL_sk_new_null(), let context = X509_STORE_CTX_new() else {
      throw Self.outOfMemory
    }
    var parsed: [OpenSSLObject] = []
    defer {
      X509_STORE_CTX_free(context)
      OPENSSL_sk_free(stack)
    }
    for certificate in presented {
      let x509 = try certificate.parsed()
      parsed.append(x509)
      guard OPENSSL_sk_push(stack, UnsafeRawPointer(x509.pointer)) > 0 else {
        throw Self.outOfMemory
      }
    }
    guard let leaf = parsed.first,
      X509_STORE_CTX_init(context, anchors.store.pointer, leaf.pointer, stack) == 1,
      anchors.settings.apply(to: X509_STORE_CTX_get0_param(context), at: time)
    else { throw Self.outOfMemory }
    let isValid = X509_verify_cert(context) == 1
    var code = X509_STORE_CTX_get_error(context)
    if !isValid, code == X509_V_OK { code = X509_V_ERR_UNSPECIFIED }
    OpenSSLErrors.clear()
    let verification = ProbeResult.Verification(
      code: code, reason: String(cString: X509_verify_cert_error_string(Int(code))),
      depth: Int(X509_STORE_CTX_get_error_depth(context)))
    guard isValid, code == X509_V_OK else { return Outcome(verification: verification, path: nil) }
    let path = try Self.certificates(in: X509_STORE_CTX_get0_chain(context))
    withExtendedLifetime(parsed) {}
    return Outcome(verification: verification, path: path)
  }

  /// The certificates of a list of OpenSSL's, copied.
  static func certificates(in stack: OpaquePointer?) throws(CertificateError) -> [Certificate] {
    var found: [Certificate] = []
    for index in 0..<max(0, OPENSSL_sk_num(stack)) {
      guard let x509 = OPENSSL_sk_value(stack, index) else { continue }
      found.append(try Certificate(copying: OpaquePointer(x509)))
    }
    return found
  }

  static var nothingShown: ProbeError {
    .handshake(reason: "the server showed no certificate")
  }

  private static var outOfMemory: CertificateError {
    .openSSL(operation: "preparing verification", reason: OpenSSLErrors.drain())
  }
}
