#if os(Linux)
  import SslPinningRules

  /// A refusal that waits for newer pins and another connection, with what it takes to judge it again.
  ///
  /// - It is told, unless its request is refused again for the same: then that is. Also if the network ends the other
  ///   connection, if the time is over, and if the other connection passes or shows something else. Else whoever shows
  ///   a wrong key would hide that by hanging up next, by letting the next connection through, or behind another fault.
  /// - It is judged by the pins in force by then. What they accept was no attack, and only the network failed.
  struct PendingRefusal: Sendable {
    let evaluation: PinEvaluation
    let host: HostName
    let connection: ConnectionFacts

    /// Tells the refusal, if it stands.
    ///
    /// - Parameter later: what its request is refused for now; the same is told once.
    /// - Returns: the refusal by the pins in force now; `nil` if they accept what it showed, or that is `later`.
    func end(
      by validator: ChainValidator, judge: any PinEvaluating, before later: PinEvaluation? = nil
    ) -> PinEvaluation? {
      guard !Self.isSame(evaluation, later) else { return nil }
      let verdict = validator.chainVerdict(
        presented: connection.certificates, host: host, judge: judge)
      let evaluation = verdict.evaluation
      guard evaluation.decision == .refuse, !Self.isSame(evaluation, later) else { return nil }
      judge.record(evaluation, of: ConnectionFacts(port: connection.port, verdict))
      return evaluation
    }

    /// Whether reports count both as one kind of failure, of one host and port.
    private static func isSame(_ one: PinEvaluation, _ other: PinEvaluation?) -> Bool {
      one.rule == other?.rule && one.presented.first == other?.presented.first
    }
  }
#endif
