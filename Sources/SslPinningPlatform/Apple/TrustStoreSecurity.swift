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
  /// - A trust object is not for two threads at once.
  final class PlatformTrustStore: @unchecked Sendable {
    /// Evaluations of handshakes start and end here. They do not block it, so one serial queue is enough.
    private static let queue = DispatchQueue(label: "ssl-pinning.trust", qos: .userInitiated)

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

    func evidence(presented: [[UInt8]], host: HostName, at moments: [Int64]) -> ChainEvidence {
      let pins = SPKIPin.readable(presented)
      guard validates else { return .notValidated(presented: pins) }
      guard !presented.isEmpty else {
        return .unreadable("the server sent no certificate", presented: [])
      }
      let certificates = presented.compactMap {
        SecCertificateCreateWithData(nil, Data($0) as CFData)
      }
      guard certificates.count == presented.count else {
        return .unreadable("a certificate cannot be read", presented: pins)
      }
      var made: SecTrust?
      let policy = SecPolicyCreateSSL(true, host.description as CFString)
      guard
        SecTrustCreateWithCertificates(certificates as CFArray, policy, &made) == errSecSuccess,
        let trust = made,
        // What a server left out is not fetched: the caller may stand on any thread.
        SecTrustSetNetworkFetchAllowed(trust, false) == errSecSuccess
      else { return .unreadable("the system makes no trust object of it", presented: pins) }
      let fault = anchorFault(of: trust) ?? Self.fault(of: trust, at: moments)
      return ChainEvidence(
        presented: pins, validation: Self.validation(of: trust, host: host, fault: fault))
    }

    /// The system's own path is the only one that is judged.
    func verdict(
      presented: [[UInt8]], host: HostName, at moments: [Int64],
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> ChainVerdict {
      let evidence = evidence(presented: presented, host: host, at: moments)
      return ChainVerdict(evaluation: judge(evidence), evidence: evidence, presented: presented)
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
      let setting = settingFault(of: trust, host: host)
      let fault = Self.fault(of: trust, at: moments)
      return evidence(of: trust, host: host, fault: setting ?? fault)
    }

    /// The same without blocking a thread, and the certificates of the path in DER, leaf first.
    func evidence(
      of trust: HandedOver<SecTrust>, host: HostName, at moments: [Int64]
    ) async -> (evidence: ChainEvidence, certificates: [[UInt8]]) {
      let setting = settingFault(of: trust.value, host: host)
      let fault = await MomentWalk.fault(at: moments) { await Self.evaluate(trust, at: $0) }
      return (
        evidence(of: trust.value, host: host, fault: setting ?? fault),
        Self.certificates(of: trust.value)
      )
    }

    /// The system calls back on the queue that it was called on, and blocks it in between at no time.
    private static func evaluate(
      _ trust: HandedOver<SecTrust>, at moment: Int64?
    ) async -> ChainFault? {
      await withCheckedContinuation { continuation in
        let answer = OneShot<ChainFault?>(otherwise: .unreadable("the system gives no answer")) {
          continuation.resume(returning: $0)
        }
        queue.async {
          guard set(moment, on: trust.value) else { return answer.give(untakenTime) }
          let status = SecTrustEvaluateAsyncWithError(trust.value, queue) { _, isValid, error in
            answer.give(isValid ? nil : fault(error))
          }
          guard status != errSecSuccess else { return }
          answer.give(.unreadable("the system does not evaluate it: \(status)"))
        }
      }
    }

    private func evidence(of trust: SecTrust, host: HostName, fault: ChainFault?) -> ChainEvidence {
      let presented = SPKIPin.readable(Self.certificates(of: trust))
      guard validates else { return .notValidated(presented: presented) }
      return ChainEvidence(
        presented: presented, validation: Self.validation(of: trust, host: host, fault: fault))
    }

    /// Puts the policy and the anchors on the trust object of a handshake; says what the system does not take.
    private func settingFault(of trust: SecTrust, host: HostName) -> ChainFault? {
      guard validates else { return nil }
      var carried: CFArray?
      guard SecTrustCopyPolicies(trust, &carried) == errSecSuccess else {
        return .unreadable("the system names no policy for it")
      }
      let own = SecPolicyCreateSSL(true, host.description as CFString)
      let policies = (carried as? [SecPolicy] ?? []) + [own]
      guard SecTrustSetPolicies(trust, policies as CFArray) == errSecSuccess else {
        return .unreadable("the system does not take the policy for TLS servers")
      }
      return anchorFault(of: trust)
    }

    private func anchorFault(of trust: SecTrust) -> ChainFault? {
      guard let anchors else { return nil }
      guard !anchors.isEmpty || trustsSystem else {
        return .untrusted(code: 0, reason: "no anchor is trusted at all")
      }
      guard
        anchors.isEmpty
          || SecTrustSetAnchorCertificates(trust, anchors as CFArray) == errSecSuccess,
        SecTrustSetAnchorCertificatesOnly(trust, !trustsSystem) == errSecSuccess
      else { return .untrusted(code: 0, reason: "the system refuses the anchors") }
      return nil
    }

    private static let untakenTime = ChainFault.unreadable("the system does not take the time")

    private static func set(_ unixSeconds: Int64?, on trust: SecTrust) -> Bool {
      guard let unixSeconds else { return true }
      let date = Date(timeIntervalSince1970: Double(unixSeconds))
      return SecTrustSetVerifyDate(trust, date as CFDate) == errSecSuccess
    }

    private static func fault(of trust: SecTrust, at moments: [Int64]) -> ChainFault? {
      MomentWalk.fault(at: moments) { moment in
        guard set(moment, on: trust) else { return untakenTime }
        var error: CFError?
        return SecTrustEvaluateWithError(trust, &error) ? nil : fault(error)
      }
    }

    /// Of several faults the system names the one that it finds most serious; of dates it has one code for both
    /// ends at times, so each may be early.
    private static func fault(_ error: CFError?) -> ChainFault {
      guard let error else { return .untrusted(code: 0, reason: "the system gives no reason") }
      let code = CFErrorGetCode(error)
      guard code != Int(errSecHostNameMismatch) else { return .wrongHost }
      let reason = CFErrorCopyDescription(error) as String? ?? "the system gives no reason"
      guard code != Int(errSecCertificateExpired), code != Int(errSecCertificateNotValidYet) else {
        return .outOfDate(code: code, reason: reason, mayBeEarly: true)
      }
      return .untrusted(code: code, reason: reason)
    }

    private static func validation(
      of trust: SecTrust, host: HostName, fault: ChainFault?
    ) -> Result<ValidatedChain, ChainFault> {
      if let fault { return .failure(fault) }
      let path = certificates(of: trust)
      let pins = SPKIPin.readable(path)
      guard pins.count == path.count,
        let chain = ValidatedChain(
          host: host, path: pins, certificates: path.map(CertificateFingerprint.init(hashing:)))
      else { return .failure(.unreadable("a key on the validated path cannot be read")) }
      return .success(chain)
    }

    /// The certificates of the path that the evaluation built, in DER, leaf first.
    ///
    /// - Hazard: if nothing was evaluated yet, current systems do it here, and block.
    static func certificates(of trust: SecTrust) -> [[UInt8]] {
      (SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? [])
        .map { [UInt8](SecCertificateCopyData($0) as Data) }
    }
  }
#endif
