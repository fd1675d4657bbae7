#if os(Linux)
  import CSslPinningOpenSSL
  import CSslPinningShims
  import SslPinningRules

  /// A list of certificates inside OpenSSL that lives as long as one judgement.
  final class CertificateStack {
    let pointer: OpaquePointer

    init?() {
      guard let stack = OPENSSL_sk_new_null() else { return nil }
      pointer = stack
    }

    deinit {
      for certificate in Self.certificates(in: pointer) { X509_free(certificate) }
      OPENSSL_sk_free(pointer)
    }

    /// Adds the certificate that `der` is.
    ///
    /// - Returns: whether it is one.
    func append(der: [UInt8]) -> Bool {
      guard let certificate = Self.parse(der: der) else { return false }
      guard OPENSSL_sk_push(pointer, UnsafeRawPointer(certificate)) > 0 else {
        X509_free(certificate)
        return false
      }
      return true
    }

    /// Adds a certificate that somebody else holds as well.
    func append(sharing certificate: OpaquePointer) -> Bool {
      guard X509_up_ref(certificate) == 1 else { return false }
      guard OPENSSL_sk_push(pointer, UnsafeRawPointer(certificate)) > 0 else {
        X509_free(certificate)
        return false
      }
      return true
    }

    /// The certificate that `der` is, without anything behind it. The caller frees it.
    static func parse(der: [UInt8]) -> OpaquePointer? {
      der.withUnsafeBufferPointer { bytes in
        guard let start = bytes.baseAddress, !pp_brings_own_curve(start, bytes.count) else {
          return nil
        }
        var cursor: UnsafePointer<UInt8>? = start
        guard let certificate = d2i_X509(nil, &cursor, bytes.count) else { return nil }
        guard cursor == start + bytes.count else {
          X509_free(certificate)
          return nil
        }
        return certificate
      }
    }

    /// The certificates in a list of OpenSSL's, borrowed.
    static func certificates(in stack: OpaquePointer?) -> [OpaquePointer] {
      (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
        OPENSSL_sk_value(stack, index).map { OpaquePointer($0) }
      }
    }

    /// The bytes of a certificate that OpenSSL holds, as they were received: OpenSSL keeps what it
    /// parsed as it was, and i2d gives it back.
    static func der(of certificate: OpaquePointer) -> [UInt8]? {
      var buffer: UnsafeMutablePointer<UInt8>?
      let count = i2d_X509(certificate, &buffer)
      guard count > 0, let buffer else { return nil }
      defer { CRYPTO_free(buffer, nil, 0) }
      return [UInt8](UnsafeBufferPointer(start: buffer, count: Int(count)))
    }

    /// What a certificate that OpenSSL holds is recognised by.
    static func identity(
      of certificate: OpaquePointer
    ) -> (pin: SPKIPin, fingerprint: CertificateFingerprint)? {
      guard let der = der(of: certificate), let pin = try? SPKIPin(certificateDER: der)
      else { return nil }
      return (pin, CertificateFingerprint(hashing: der))
    }
  }

  /// What a server sent, as OpenSSL holds it for one judgement.
  struct SentChain {
    /// OpenSSL's list of certificates, leaf first; borrowed, or held by `owner`.
    let stack: OpaquePointer
    /// The same certificates.
    let certificates: [OpaquePointer]
    /// The same certificates in DER.
    let presented: [[UInt8]]
    /// Their pins, up to the first that has no key: the leaf's place is never taken by another
    /// certificate.
    let pins: [SPKIPin]
    private let owner: CertificateStack?

    /// What stands in a handshake's list; `nil` where the server sent no certificate.
    init?(storeContext: OpaquePointer) {
      // What the server sent stands in the list of untrusted certificates, the leaf included.
      let stack = X509_STORE_CTX_get0_untrusted(storeContext)
      let certificates = CertificateStack.certificates(in: stack)
      guard let stack, let leaf = X509_STORE_CTX_get0_cert(storeContext),
        certificates.first == leaf
      else { return nil }
      self.stack = stack
      self.certificates = certificates
      presented = certificates.map { CertificateStack.der(of: $0) ?? [] }
      pins = SPKIPin.readable(presented)
      owner = nil
    }

    /// Reads certificates.
    ///
    /// - Throws: ``ChainFault/unreadable(_:)``.
    init(presented: [[UInt8]]) throws(ChainFault) {
      guard !presented.isEmpty else { throw .unreadable("the server sent no certificate") }
      guard let owner = CertificateStack() else { throw .unreadable("no memory") }
      for (index, certificate) in presented.enumerated() {
        guard owner.append(der: certificate) else {
          throw .unreadable("certificate \(index + 1) of \(presented.count) cannot be read")
        }
      }
      stack = owner.pointer
      certificates = CertificateStack.certificates(in: owner.pointer)
      self.presented = presented
      pins = SPKIPin.readable(presented)
      self.owner = owner
    }
  }

  /// A path that OpenSSL found, with a reference to each certificate on it.
  final class OwnedPath {
    private var stack: OpaquePointer?

    init?(_ stack: OpaquePointer?) {
      guard let stack else { return nil }
      self.stack = stack
    }

    deinit {
      for certificate in certificates { X509_free(certificate) }
      OPENSSL_sk_free(stack)
    }

    var certificates: [OpaquePointer] { CertificateStack.certificates(in: stack) }

    /// Gives the list away, to be freed by OpenSSL.
    func release() -> OpaquePointer? {
      defer { stack = nil }
      return stack
    }
  }
#endif
