#if os(Linux)
  import COpenSSL
  import Pinning

  extension ChainValidator {
    /// A validator whose system keeps its anchors elsewhere.
    package init(trust: TrustMode, system: SystemAnchors) throws(TrustError) {
      self.trust = trust
      store = try PlatformTrustStore(trust: trust, system: system)
    }

    /// OpenSSL's `X509_STORE *`, for connections whose own library verifies as well. It lives as
    /// long as the validator; whoever keeps it takes a reference (`SSL_CTX_set1_verify_cert_store`
    /// does). Under ``TrustMode/pinnedKeysOnly`` it is empty.
    package var storePointer: OpaquePointer { store.pointer }

    /// Judges the chain of a handshake, inside the callback of `SSL_CTX_set_cert_verify_callback`.
    ///
    /// - The same judgement as ``evidence(presented:host:at:)``, over this validator's anchors and
    ///   settings, whatever the connection was set to.
    /// - The verify result and the verified chain are left in `storeContext`, as the connection's
    ///   own verification would. Under ``TrustMode/pinnedKeysOnly`` it stays untouched.
    /// - Nothing of `storeContext` is kept.
    ///
    /// - Parameters:
    ///   - storeContext: OpenSSL's `X509_STORE_CTX *`.
    ///   - unixSeconds: the time at which the certificates must be valid; `nil` means now.
    package func evidence(
      storeContext: OpaquePointer, host: HostName, at unixSeconds: Int64? = nil
    ) -> ChainEvidence {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      // What the server sent stands in the list of untrusted certificates, the leaf included.
      let chain = X509_STORE_CTX_get0_untrusted(storeContext)
      let sent = CertificateStack.certificates(in: chain)
      guard let chain, let leaf = X509_STORE_CTX_get0_cert(storeContext), sent.first == leaf else {
        X509_STORE_CTX_set_error(storeContext, X509_V_ERR_UNSPECIFIED)
        return ChainEvidence(
          presented: [], validation: .failure(.unreadable("the server sent no certificate")))
      }
      var pins: [SPKIPin] = []
      for certificate in sent {
        guard let pin = CertificateStack.identity(of: certificate)?.pin else { break }
        pins.append(pin)
      }
      guard store.validates else { return .notValidated(presented: pins) }
      let judgement = PathJudgement(store: store, chain: chain, host: host, at: unixSeconds)
      X509_STORE_CTX_set_error(storeContext, judgement.code)
      if let path = judgement.path?.release() {
        X509_STORE_CTX_set0_verified_chain(storeContext, path)
      }
      return ChainEvidence(presented: pins, validation: judgement.validation)
    }
  }
#endif
