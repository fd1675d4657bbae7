import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules
  import Security

  /// The anchors of one trust mode, and the judgement of a `SecTrust` under them.
  ///
  /// - The trust object is evaluated first; pins are taken over the path that the system validated,
  ///   from the bytes of its certificates: never over what the server merely sent, and never from a
  ///   key that was taken out and encoded again.
  /// - The policy for TLS servers with the host's name is added to those that the trust object of a
  ///   handshake carries. All must hold, so this only tightens.
  /// - Every setting is checked: one that the system does not take makes the chain invalid.
  /// - No anchor and not the system's: nothing is trusted. That is decided here, because an empty
  ///   list is easily taken for none.
  final class PlatformTrustStore: @unchecked Sendable {
    // Certificates are immutable.
    private let anchors: [SecCertificate]?
    private let trustsSystem: Bool
    /// Whether any path is validated at all.
    let validates: Bool

    init(trust: TrustMode) throws(TrustError) {
      switch trust {
      case .pinnedKeysOnly: (anchors, trustsSystem, validates) = (nil, false, false)
      case .system: (anchors, trustsSystem, validates) = (nil, true, true)
      case .anchors(let own, let andSystem):
        var certificates: [SecCertificate] = []
        for (index, der) in own.enumerated() {
          // Its pin must be known when a path ends there, so its key has to be found as well.
          guard let certificate = SecCertificateCreateWithData(nil, Data(der) as CFData),
            (try? SPKIPin(certificateDER: der)) != nil
          else { throw .malformedAnchor(index: index) }
          certificates.append(certificate)
        }
        (anchors, trustsSystem, validates) = (certificates, andSystem, true)
      }
    }

    func evidence(
      presented: [[UInt8]], host: HostName, at moments: [Int64]
    ) -> ChainEvidence {
      // Up to the first that has no key: the leaf's place is never taken by another certificate.
      var pins: [SPKIPin] = []
      for certificate in presented {
        guard let pin = try? SPKIPin(certificateDER: certificate) else { break }
        pins.append(pin)
      }
      guard validates else { return .notValidated(presented: pins) }
      guard !presented.isEmpty else {
        return .unreadable("the server sent no certificate", presented: [])
      }
      var certificates: [SecCertificate] = []
      for (index, der) in presented.enumerated() {
        guard let certificate = SecCertificateCreateWithData(nil, Data(der) as CFData) else {
          let fault = "certificate \(index + 1) of \(presented.count) cannot be read"
          return .unreadable(fault, presented: pins)
        }
        certificates.append(certificate)
      }
      var made: SecTrust?
      let policy = SecPolicyCreateSSL(true, host.description as CFString)
      guard
        SecTrustCreateWithCertificates(certificates as CFArray, policy, &made) == errSecSuccess,
        let trust = made,
        // What a server left out is not fetched: the caller may stand on any thread.
        SecTrustSetNetworkFetchAllowed(trust, false) == errSecSuccess
      else { return .unreadable("the system makes no trust object of it", presented: pins) }
      return ChainEvidence(
        presented: pins, validation: validation(of: trust, host: host, at: moments))
    }

    /// The system's own path is the only one that is judged.
    func verdict(
      presented: [[UInt8]], host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> ChainVerdict {
      let evidence = evidence(presented: presented, host: host, at: moments)
      return ChainVerdict(
        evaluation: judge(evidence), evidence: evidence, presented: presented)
    }

    /// Judges the trust object of a handshake. Blocks for as long as the system evaluates, which may
    /// take a round trip on the network.
    ///
    /// The system does not tell what the server sent, so ``ChainEvidence/presented`` is the path that
    /// it built; the leaf is the one that was sent.
    ///
    /// - Parameter moments: Unix seconds, at one of which the dates must hold; empty means now.
    func evidence(
      handshake trust: SecTrust, host: HostName, at moments: [Int64]
    ) -> ChainEvidence {
      guard validates else {
        // Evaluated all the same: before that the system names no certificates. The answer is not
        // asked for, because under this mode no path counts.
        _ = SecTrustEvaluateWithError(trust, nil)
        return .notValidated(presented: Self.pins(of: trust, whole: false) ?? [])
      }
      var carried: CFArray?
      guard SecTrustCopyPolicies(trust, &carried) == errSecSuccess else {
        return .unreadable("the system names no policy for it", presented: [])
      }
      let own = SecPolicyCreateSSL(true, host.description as CFString)
      let policies = (carried as? [SecPolicy] ?? []) + [own]
      guard SecTrustSetPolicies(trust, policies as CFArray) == errSecSuccess else {
        return .unreadable("the system does not take the policy for TLS servers", presented: [])
      }
      let validation = validation(of: trust, host: host, at: moments)
      return ChainEvidence(
        presented: Self.pins(of: trust, whole: false) ?? [], validation: validation)
    }

    private static func set(_ unixSeconds: Int64?, on trust: SecTrust) -> Bool {
      guard let unixSeconds else { return true }
      let date = Date(timeIntervalSince1970: Double(unixSeconds))
      return SecTrustSetVerifyDate(trust, date as CFDate) == errSecSuccess
    }

    private func validation(
      of trust: SecTrust, host: HostName, at moments: [Int64]
    ) -> Result<ValidatedChain, ChainFault> {
      if let anchors {
        guard !anchors.isEmpty || trustsSystem else {
          return .failure(.untrusted(code: 0, reason: "no anchor is trusted at all"))
        }
        guard
          anchors.isEmpty
            || SecTrustSetAnchorCertificates(trust, anchors as CFArray) == errSecSuccess,
          SecTrustSetAnchorCertificatesOnly(trust, !trustsSystem) == errSecSuccess
        else { return .failure(.untrusted(code: 0, reason: "the system refuses the anchors")) }
      }
      if let fault = Self.fault(of: trust, at: moments) { return .failure(fault) }
      guard let path = Self.pins(of: trust, whole: true),
        let chain = ValidatedChain(
          host: host, path: path,
          certificates: Self.certificates(of: trust).map(CertificateFingerprint.init(hashing:)))
      else {
        return .failure(.unreadable("a key on the validated path cannot be read"))
      }
      return .success(chain)
    }

    /// Evaluates at each moment until all dates hold at one; nothing but a date is judged twice.
    private static func fault(of trust: SecTrust, at moments: [Int64]) -> ChainFault? {
      var last: ChainFault?
      for moment in moments.isEmpty ? [nil] : moments.map(Optional.some) {
        guard set(moment, on: trust) else {
          return .unreadable("the system does not take the time")
        }
        var error: CFError?
        guard !SecTrustEvaluateWithError(trust, &error) else { return nil }
        let fault = fault(error)
        last = fault
        guard case .outOfDate = fault else { return fault }
      }
      return last
    }

    private static func fault(_ error: CFError?) -> ChainFault {
      guard let error else { return .untrusted(code: 0, reason: "the system gives no reason") }
      let code = CFErrorGetCode(error)
      guard code != Int(errSecHostNameMismatch) else { return .wrongHost }
      let reason = CFErrorCopyDescription(error) as String? ?? "the system gives no reason"
      // The system has one code for both, so both may be early.
      guard code != Int(errSecCertificateExpired), code != Int(errSecCertificateNotValidYet) else {
        return .outOfDate(code: code, reason: reason, mayBeEarly: true)
      }
      return .untrusted(code: code, reason: reason)
    }

    /// The certificates of the path that the evaluation built, in DER, leaf first.
    static func certificates(of trust: SecTrust) -> [[UInt8]] {
      (SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? [])
        .map { [UInt8](SecCertificateCopyData($0) as Data) }
    }

    /// The pins of the path that the evaluation built, leaf first.
    ///
    /// - Parameter whole: whether one key that cannot be read makes it `nil`, or ends the list.
    private static func pins(of trust: SecTrust, whole: Bool) -> [SPKIPin]? {
      var pins: [SPKIPin] = []
      for der in certificates(of: trust) {
        guard let pin = try? SPKIPin(certificateDER: der) else { return whole ? nil : pins }
        pins.append(pin)
      }
      return pins
    }
  }

  extension ChainEvidence {
    /// Evidence under ``TrustMode/pinnedKeysOnly``.
    static func notValidated(presented: [SPKIPin]) -> ChainEvidence {
      ChainEvidence(
        presented: presented,
        validation: .failure(
          .untrusted(code: 0, reason: "no chain is validated where only pinned keys count")))
    }

    fileprivate static func unreadable(_ reason: String, presented: [SPKIPin]) -> ChainEvidence {
      ChainEvidence(presented: presented, validation: .failure(.unreadable(reason)))
    }
  }
#endif
