#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  extension ChainValidator {
    /// A validator whose system keeps its anchors elsewhere, or whose paths are shorter.
    package init(
      trust: TrustMode, system: SystemAnchors,
      mostIntermediates: Int32 = VerifySettings.usualMostIntermediates
    ) throws(TrustError) {
      self.trust = trust
      store = try PlatformTrustStore(
        trust: trust, system: system, mostIntermediates: mostIntermediates)
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
    ///   - time: the times at one of which the dates must hold; `nil` means the system's clock.
    package func evidence(
      storeContext: OpaquePointer, host: HostName, at time: TrustTime? = nil
    ) -> ChainEvidence {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let sent = Self.sent(in: storeContext) else { return .nothingSent }
      guard store.validates else { return .notValidated(presented: sent.pins) }
      let judgement = PathJudgement(
        anchors: store.pointer, settings: store.settings, chain: sent.stack, host: host,
        at: time?.dates ?? [])
      judgement.tell(storeContext)
      return ChainEvidence(presented: sent.pins, validation: judgement.validation)
    }

    /// The verdict of `judge`, at its time, on the chain of a handshake, inside the callback of
    /// `SSL_CTX_set_cert_verify_callback`.
    ///
    /// - The same judgement as ``evaluate(presented:host:at:by:)``, over this validator's anchors and
    ///   settings, whatever the connection was set to.
    /// - The verify result and the verified chain of the path that was judged are left in
    ///   `storeContext`. Under ``TrustMode/pinnedKeysOnly`` it stays untouched.
    /// - Nothing of `storeContext` is kept.
    ///
    /// - Important: the verify result is the chain's, not the verdict's. Let the handshake pass only
    ///   where the evaluation's decision is `accept`. Look at the judge's generation *before*.
    /// - Parameter storeContext: OpenSSL's `X509_STORE_CTX *`.
    package func verdict(
      storeContext: OpaquePointer, host: HostName, judge: any PinJudge
    ) -> ChainVerdict {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let sent = Self.sent(in: storeContext) else {
        return ChainVerdict(
          evaluation: judge.evaluate(.nothingSent, host: host), evidence: .nothingSent,
          presented: [])
      }
      let (verdict, judgement) = store.verdict(on: sent, host: host, at: judge.time?.dates ?? []) {
        judge.evaluate($0, host: host)
      }
      judgement?.tell(storeContext)
      return verdict
    }

    /// Why the chain of a registry's own server is not valid, inside the callback of
    /// `SSL_CTX_set_cert_verify_callback`; `nil` where it is. The name is libcurl's to check.
    ///
    /// - Parameter time: see ``RegistryDates``.
    func faultOfFetch(storeContext: OpaquePointer, at time: TrustTime?) -> ChainFault? {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let sent = Self.sent(in: storeContext) else {
        return .unreadable("the server sent no certificate")
      }
      let last = RegistryDates.lastMoment(for: sent.presented, at: time)
      let found = PathJudgement.findPath(
        anchors: store.pointer, settings: store.settings, chain: sent.stack,
        at: (time?.dates ?? []) + (last.map { [$0] } ?? []))
      X509_STORE_CTX_set_error(storeContext, found.code)
      if let path = found.path?.release() {
        X509_STORE_CTX_set0_verified_chain(storeContext, path)
      }
      return found.fault
    }

    private static func sent(in storeContext: OpaquePointer) -> SentChain? {
      let sent = SentChain(storeContext: storeContext)
      if sent == nil { X509_STORE_CTX_set_error(storeContext, X509_V_ERR_UNSPECIFIED) }
      return sent
    }
  }

  extension PathJudgement {
    /// Leaves the result and the path in the context of a handshake, as its own verification would.
    fileprivate func tell(_ storeContext: OpaquePointer) {
      X509_STORE_CTX_set_error(storeContext, code)
      if let path = path?.release() { X509_STORE_CTX_set0_verified_chain(storeContext, path) }
    }
  }

  extension ChainEvidence {
    fileprivate static let nothingSent = ChainEvidence(
      presented: [], validation: .failure(.unreadable("the server sent no certificate")))
  }
#endif
