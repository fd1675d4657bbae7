#if os(Linux)
  import CSslPinningOpenSSL
  import Foundation
  import SslPinningRules

  /// The anchors of one trust mode inside OpenSSL, with the settings that every path is held to.
  final class PlatformTrustStore: Sendable {
    // X509_STORE locks itself; it is only read after init, or extended by its directory look-up.
    nonisolated(unsafe) let pointer: OpaquePointer
    let settings: VerifySettings
    /// Whether any path is validated at all.
    let validates: Bool

    init(
      trust: TrustMode, system: SystemAnchors = SystemAnchors(),
      mostIntermediates: Int32 = VerifySettings.usualMostIntermediates
    ) throws(TrustError) {
      // OpenSSL's loaders leave and clear errors of their own; none may surface elsewhere.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let store = X509_STORE_new() else { throw .unavailable("no memory") }
      do throws(TrustError) {
        var endsAtAnyAnchor = false
        switch trust {
        case .pinnedKeysOnly: break
        case .system:
          guard system.load(into: store) else { throw .noSystemAnchors(searched: system.searched) }
        case .anchors(let own, let andSystem):
          endsAtAnyAnchor = try Self.add(own, to: store)
          // One's own are enough to go on with where a system has none.
          if andSystem { _ = system.load(into: store) }
        }
        validates = trust != .pinnedKeysOnly
        settings = VerifySettings(
          endsAtAnyAnchor: endsAtAnyAnchor, mostIntermediates: mostIntermediates)
        guard settings.apply(to: X509_STORE_get0_param(store)) else {
          throw .unavailable("OpenSSL refuses the settings")
        }
      } catch {
        X509_STORE_free(store)
        throw error
      }
      pointer = store
    }

    deinit { X509_STORE_free(pointer) }

    func evidence(
      presented: [[UInt8]], host: HostName, at moments: [Int64]
    ) -> ChainEvidence {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      do throws(ChainFault) {
        let sent = try SentChain(presented: presented)
        guard validates else { return .notValidated(presented: sent.pins) }
        let judgement = PathJudgement(
          anchors: pointer, settings: settings, chain: sent.stack, host: host, at: moments)
        return ChainEvidence(presented: sent.pins, validation: judgement.validation)
      } catch { return unreadable(presented, error) }
    }

    func verdict(
      presented: [[UInt8]], host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> ChainVerdict {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      do throws(ChainFault) {
        return verdict(
          on: try SentChain(presented: presented), host: host, at: moments, by: judge
        ).verdict
      } catch {
        let evidence = unreadable(presented, error)
        return ChainVerdict(
          evaluation: judge(evidence), evidence: evidence, presented: presented)
      }
    }

    /// - Returns: the verdict, and the judgement on the path that it stands on, where any was
    ///   validated.
    func verdict(
      on sent: SentChain, host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> (verdict: ChainVerdict, judgement: PathJudgement?) {
      guard validates else {
        let evidence = ChainEvidence.notValidated(presented: sent.pins)
        let verdict = ChainVerdict(
          evaluation: judge(evidence), evidence: evidence, presented: sent.presented)
        return (verdict, nil)
      }
      let search = PathSearch(store: self, sent: sent, host: host, moments: moments)
      return search.verdict(by: judge)
    }

    private func unreadable(_ presented: [[UInt8]], _ fault: ChainFault) -> ChainEvidence {
      let pins = SPKIPin.readable(presented)
      return validates
        ? ChainEvidence(presented: pins, validation: .failure(fault))
        : .notValidated(presented: pins)
    }

    /// Adds an app's own anchors.
    ///
    /// - Returns: whether one of them is no root: it names another issuer. Roots alone are held to
    ///   a root's rules.
    private static func add(
      _ anchors: [[UInt8]], to store: OpaquePointer
    ) throws(TrustError) -> Bool {
      var areRoots = true
      for (index, anchor) in anchors.enumerated() {
        // Its pin must be known when a path ends there, so its key has to be found as well.
        guard let certificate = CertificateStack.parse(der: anchor),
          (try? SPKIPin(certificateDER: anchor)) != nil
        else { throw .malformedAnchor(index: index) }
        defer { X509_free(certificate) }
        if X509_get_extension_flags(certificate) & UInt32(EXFLAG_SI) == 0 { areRoots = false }
        guard X509_STORE_add_cert(store, certificate) == 1 else {
          throw .unavailable("OpenSSL does not take anchor \(index)")
        }
      }
      return !areRoots
    }
  }
#endif
