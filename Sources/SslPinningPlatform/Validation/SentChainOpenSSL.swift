#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

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
#endif
