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

    /// Another number for each validator that was ever made in this process.
    package var generation: UInt64 { store.generation }

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
      let judgement = ChainVerifier(store: store, sent: sent, moments: time?.dates ?? [])
        .judgement(for: host)
      judgement.found.tell(storeContext)
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
    package func chainVerdict(
      storeContext: OpaquePointer, host: HostName, judge: any PinEvaluating
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
      judgement?.found.tell(storeContext)
      return verdict
    }

    /// Why the chain of a registry's own server is not valid, inside the callback of
    /// `SSL_CTX_set_cert_verify_callback`; `nil` where it is. The name is libcurl's to check, if there is one.
    ///
    /// - Parameter time: see ``RegistryDates``.
    func faultOfFetch(storeContext: OpaquePointer, at time: TrustTime?) -> ChainFault? {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let sent = Self.sent(in: storeContext) else {
        return .unreadable("the server sent no certificate")
      }
      let last = RegistryDates.lastMoment(for: sent.presented, at: time)
      let verifier = ChainVerifier(store: store, sent: sent, moments: time?.dates ?? [])
      var found = verifier.path(at: verifier.moments + (last.map { [$0] } ?? []))
      if found.fault == nil, sent.certificates.first.map(HostCheck.hasNames) != true {
        (found.code, found.fault) = (X509_V_ERR_HOSTNAME_MISMATCH, .wrongHost)
      }
      found.tell(storeContext)
      return found.fault
    }

    /// Looks for a valid path from the first of these certificates (DER), by the same code as every judgement.
    ///
    /// - Parameter unixSeconds: the time at which the dates must hold; `nil` means the system's clock.
    package func examine(_ presented: [[UInt8]], at unixSeconds: Int64?) -> ChainExamination {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      do throws(ChainFault) {
        let sent = try SentChain(presented: presented)
        let verifier = ChainVerifier(
          store: store, sent: sent, moments: unixSeconds.map { [$0] } ?? [])
        let found = verifier.path(at: verifier.moments)
        let path = found.fault == nil ? found.path?.certificates : nil
        return ChainExamination(
          code: found.code, depth: found.depth, fault: found.fault,
          path: path?.map { CertificateStack.der(of: $0) ?? [] })
      } catch {
        return ChainExamination(code: X509_V_ERR_UNSPECIFIED, depth: 0, fault: error, path: nil)
      }
    }

    private static func sent(in storeContext: OpaquePointer) -> SentChain? {
      let sent = SentChain(storeContext: storeContext)
      if sent == nil { X509_STORE_CTX_set_error(storeContext, X509_V_ERR_UNSPECIFIED) }
      return sent
    }
  }

  /// What came of a chain, for whoever reports it instead of deciding by it. The name is judged apart.
  package struct ChainExamination: Sendable {
    /// OpenSSL's code: `X509_V_OK`, which is 0, for a valid path.
    package let code: Int32
    /// Which certificate of the path the code is about; 0 is the leaf.
    package let depth: Int
    /// Why there is no valid path; `nil` if there is one.
    package let fault: ChainFault?
    /// The valid path in DER, leaf first, anchor last; `nil` if there is none.
    package let path: [[UInt8]]?
  }

  extension ChainEvidence {
    fileprivate static let nothingSent = ChainEvidence(
      presented: [], validation: .failure(.unreadable("the server sent no certificate")))
  }
#endif
