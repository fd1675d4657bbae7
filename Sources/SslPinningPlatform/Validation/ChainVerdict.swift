import SslPinningRules

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
  package func verdict(
    presented: [[UInt8]], host: HostName, judge: any PinJudge
  ) -> ChainVerdict {
    store.verdict(presented: presented, host: host, at: judge.time?.dates ?? []) {
      judge.evaluate($0, host: host)
    }
  }
}
