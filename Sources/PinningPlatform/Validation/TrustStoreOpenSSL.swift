#if os(Linux)
  import COpenSSL
  import Foundation
  import Pinning

  /// The anchors of one trust mode inside OpenSSL, with the settings that every path is held to.
  final class PlatformTrustStore: Sendable {
    // X509_STORE locks itself; it is only read after init, or extended by its directory look-up.
    nonisolated(unsafe) let pointer: OpaquePointer
    let settings: VerifySettings
    /// Whether any path is validated at all.
    let validates: Bool

    init(
      trust: TrustMode, system: SystemAnchors = SystemAnchors()
    ) throws(TrustError) {
      // OpenSSL's loaders leave and clear errors of their own; none may surface elsewhere.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let store = X509_STORE_new() else { throw .unavailable("no memory") }
      do throws(TrustError) {
        switch trust {
        case .pinnedKeysOnly:
          (settings, validates) = (VerifySettings(endsAtAnyAnchor: false), false)
        case .system:
          (settings, validates) = (VerifySettings(endsAtAnyAnchor: false), true)
          guard system.load(into: store) else { throw .noSystemAnchors(searched: system.searched) }
        case .anchors(let own, let andSystem):
          let endsAtAnyAnchor = try Self.add(own, to: store)
          (settings, validates) = (VerifySettings(endsAtAnyAnchor: endsAtAnyAnchor), true)
          // One's own are enough to go on with where a system has none.
          if andSystem { _ = system.load(into: store) }
        }
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
      presented: [[UInt8]], host: HostName, at unixSeconds: Int64?
    ) -> ChainEvidence {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      // Up to the first that has no key: the leaf's place is never taken by another certificate.
      var pins: [SPKIPin] = []
      for certificate in presented {
        guard let pin = try? SPKIPin(certificateDER: certificate) else { break }
        pins.append(pin)
      }
      guard validates else { return .notValidated(presented: pins) }
      guard !presented.isEmpty else {
        return ChainEvidence(
          presented: [], validation: .failure(.unreadable("the server sent no certificate")))
      }
      guard let chain = CertificateStack() else {
        return ChainEvidence(presented: pins, validation: .failure(.unreadable("no memory")))
      }
      for (index, certificate) in presented.enumerated() {
        guard chain.append(der: certificate) else {
          let fault = "certificate \(index + 1) of \(presented.count) cannot be read"
          return ChainEvidence(presented: pins, validation: .failure(.unreadable(fault)))
        }
      }
      let judgement = PathJudgement(
        store: self, chain: chain.pointer, host: host, at: unixSeconds)
      return ChainEvidence(presented: pins, validation: judgement.validation)
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

  extension ChainEvidence {
    /// Evidence under ``TrustMode/pinnedKeysOnly``.
    static func notValidated(presented: [SPKIPin]) -> ChainEvidence {
      ChainEvidence(
        presented: presented,
        validation: .failure(
          .untrusted(
            code: Int(X509_V_ERR_UNSPECIFIED),
            reason: "no chain is validated where only pinned keys count")))
    }
  }
#endif
