import SslPinningRules

/// Judges chains under one trust mode: is there a valid path to an anchor, and is the certificate
/// for this host? The only maker of a ``SslPinningRules/ValidatedChain``.
///
/// - The path is validated in full, then the name is checked, then pins are taken over the path
///   that was found, anchor included: never over what the server merely sent.
/// - Names stand in subjectAltName only. A common name is not a host name (RFC 9525 §2): it is free
///   text that CAs never checked as one, and no platform's own validation takes it any more.
/// - A wildcard is a whole first label; `w*.example.com` matches nothing (RFC 9525 §6.3).
/// - For TLS servers: certificates for another purpose are refused. Keys and signatures below 112
///   bits of security (RSA below 2048 bits, SHA-1) are refused, the anchor's own signature excepted.
/// - At most a hundred certificates stand between the leaf and the anchor (on Linux; the system's own
///   limit on Apple's).
/// - One's own anchors may be an intermediate or a server's own certificate: a path ends there.
///   Where all of them are roots, as among the system's, only a sound root ends a path.
/// - Without anchors nothing is trusted. There is no fallback to the system's.
/// - A certificate that cannot be read makes the whole chain unreadable, as in a TLS handshake.
///
/// Revocation is not checked. The anchors are read once, when the validator is made; it can be used
/// from any number of threads.
public struct ChainValidator: Sendable {
  /// Who vouches for servers.
  public let trust: TrustMode

  let store: PlatformTrustStore

  /// Reads the anchors of a trust mode.
  ///
  /// On Linux the system's anchors are OpenSSL's (`SSL_CERT_FILE` and `SSL_CERT_DIR` included) or,
  /// where it has none, the bundle file that distributions install for libcurl.
  ///
  /// - Throws: ``TrustError``.
  public init(trust: TrustMode) throws(TrustError) {
    self.trust = trust
    store = try PlatformTrustStore(trust: trust)
  }

  /// Reads the anchors for what is never pinned: registries and collectors. ``SslPinningRules/TrustMode/pinnedKeysOnly``
  /// has none, so the system's are read.
  ///
  /// - Throws: ``TrustError``.
  package init(anchorsOf trust: TrustMode) throws(TrustError) {
    try self.init(trust: trust == .pinnedKeysOnly ? .system : trust)
  }

  /// Judges a chain of DER certificates, leaf first, as a server sent them for `host`.
  ///
  /// Under ``SslPinningRules/TrustMode/pinnedKeysOnly`` no path is validated and the evidence says so; its
  /// ``SslPinningRules/ChainEvidence/presented`` pins are what such a policy judges.
  ///
  /// - Parameters:
  ///   - presented: the certificates, each in DER, leaf first.
  ///   - host: the host as the request names it.
  ///   - unixSeconds: Unix time in seconds at which the certificates must be valid; `nil` means now.
  public func evidence(
    presented: [[UInt8]], host: HostName, at unixSeconds: Int64? = nil
  ) -> ChainEvidence {
    store.evidence(presented: presented, host: host, at: unixSeconds.map { [$0] } ?? [])
  }
}

/// The verdict on a chain, with what it stands on.
package struct ChainVerdict: Sendable {
  /// What to do, and why.
  package let evaluation: PinEvaluation
  /// What it was judged on: where several paths are valid, the one that was accepted, else the
  /// first.
  package let evidence: ChainEvidence
  /// The certificates as the server sent them, in DER, leaf first: enough to judge an open connection
  /// again once its pins have changed, on other paths too.
  package let presented: [[UInt8]]
}

extension ChainEvidence {
  /// Evidence under ``SslPinningRules/TrustMode/pinnedKeysOnly``; the code is OpenSSL's for a fault without a name.
  static func notValidated(presented: [SPKIPin]) -> ChainEvidence {
    ChainEvidence(
      presented: presented,
      validation: .failure(
        .untrusted(code: 1, reason: "no chain is validated where only pinned keys count")))
  }

  static func unreadable(_ reason: String, presented: [SPKIPin]) -> ChainEvidence {
    ChainEvidence(presented: presented, validation: .failure(.unreadable(reason)))
  }
}

extension ChainValidator {
  /// Judges a chain of DER certificates, leaf first, as a server sent them for `host`, by `judge`.
  ///
  /// - What is wrong may be of the path (`PinEvaluation.mayHaveAnotherPath`). Then other
  ///   valid paths to the same leaf are held against `judge` as well, at most eight; the first that
  ///   satisfies it counts, else the first verdict. On Apple's systems one path is judged: the
  ///   system's.
  /// - Every path is validated in full: to the same settings, at the same time, for the same name.
  ///
  /// - Parameters:
  ///   - presented: the certificates, each in DER, leaf first.
  ///   - host: the host as the request names it.
  ///   - unixSeconds: Unix time in seconds at which the certificates must be valid; `nil` means now.
  ///   - judge: a policy at a time; called once for each path.
  public func evaluate(
    presented: [[UInt8]], host: HostName, at unixSeconds: Int64? = nil,
    by judge: (ChainEvidence) -> PinEvaluation
  ) -> PinEvaluation {
    store.verdict(
      presented: presented, host: host, at: unixSeconds.map { [$0] } ?? [], by: judge
    ).evaluation
  }

  /// ``evaluate(presented:host:at:by:)`` by a judge, at its time: for connections whose pins have
  /// changed.
  package func chainVerdict(
    presented: [[UInt8]], host: HostName, judge: any PinEvaluating
  ) -> ChainVerdict {
    store.verdict(presented: presented, host: host, at: judge.time?.dates ?? []) {
      judge.evaluate($0, host: host)
    }
  }
}

/// Why a validator cannot be made of a trust mode.
public enum TrustError: Error, Hashable, Sendable {
  /// The anchor at this index of the app's list is not one certificate in DER.
  case malformedAnchor(index: Int)
  /// The system's anchors are asked for, and there are none where the system keeps them.
  case noSystemAnchors(searched: [String])
  /// The platform's library gives no memory or refuses its settings.
  case unavailable(String)
}

extension TrustError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .malformedAnchor(let index):
      "anchor \(index) is not a certificate in DER; hint: decode PEM files first"
    case .noSystemAnchors(let searched):
      "no trusted certificates in \(searched.joined(separator: ", ")); "
        + "hint: install ca-certificates, or pass anchors"
    case .unavailable(let reason): "certificates cannot be validated: \(reason)"
    }
  }
}
