#if os(Linux)
  import SslPinningRules

  /// A refusal that waits for newer pins and another connection, with what it takes to judge it again.
  ///
  /// - It is told, unless its request is refused after all: then that is. Also if the network ends the other
  ///   connection, if the time is over, and if the other connection passes. Else whoever shows a wrong key would hide
  ///   that by hanging up next, or by letting the next connection through.
  /// - It is judged by the pins in force by then. What they accept was no attack, and only the network failed.
  struct PendingRefusal: Sendable {
    let evaluation: PinEvaluation
    let host: HostName
    let connection: ConnectionFacts

    /// Tells the refusal, if it stands.
    ///
    /// - Returns: the refusal by the pins in force now; `nil` if they accept what the server showed.
    func end(by validator: ChainValidator, judge: any PinEvaluating) -> PinEvaluation? {
      let evaluation = validator.chainVerdict(
        presented: connection.certificates, host: host, judge: judge
      ).evaluation
      guard evaluation.decision == .refuse else { return nil }
      judge.record(evaluation, of: connection)
      return evaluation
    }
  }
#endif
