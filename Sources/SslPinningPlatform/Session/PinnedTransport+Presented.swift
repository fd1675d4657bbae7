import SslPinningRules

/// Verdicts for connections that another stack makes: one's own TLS client, gRPC, a WebSocket
/// library.
extension PinnedTransport {
  /// Judges a chain as a server sent it.
  ///
  /// - The chain is validated under the transport's trust mode, for `host`, before any pin is looked
  ///   at; other valid paths to the same leaf are tried where the first is refused for a CA.
  /// - Does not wait for newer pins. A refusal that they could turn starts to fetch them, so that
  ///   the next handshake meets them.
  /// - The verdict is told like that of any other connection.
  ///
  /// - Important: let the connection live only where the decision is `accept`, send nothing before,
  ///   and ask again for every connection and after every change of pins. A TLS session that is
  ///   resumed shows no certificates: switch resumption off.
  ///
  /// - Parameters:
  ///   - presented: the certificates in DER, leaf first.
  ///   - host: the host as the request names it, not the SNI.
  public func evaluate(presented: [[UInt8]], host: String) -> PinEvaluation {
    told(of: host) { name in
      (validator.verdict(presented: presented, host: name, judge: judge).evaluation, presented)
    }
  }

  /// Judges the handshake of a session that somebody else made, or whose verdict a task's own delegate took away, its
  /// wait for newer pins included.
  ///
  /// - Parameter allowsUnlisted: whether the policy's leave for unlisted hosts counts. Never on a pinned session, see
  ///   ``SessionRole/pinned``.
  func accepts(
    host: String, port: Int, allowsUnlisted: Bool, validate: ConnectionJudgement.Validate
  ) async -> Bool {
    let judgement = ConnectionJudgement(transport: self, acceptsUnlisted: allowsUnlisted)
    let verdict = await judgement.verdict(host: host, port: port, challenged: 0, validate: validate)
    return verdict.evaluation.decision == .accept
  }

  /// Whether an entry speaks of a host. Closed: also if nobody can read it.
  func lists(_ host: String) -> Bool { (try? HostName(host)).map(judge.lists) ?? true }

  /// Gives a verdict on a connection that another stack makes, tells it, and starts to fetch newer pins if
  /// they could turn it. A host that cannot be read is refused.
  func told(
    of host: String, _ verdict: (HostName) -> (PinEvaluation, certificates: [[UInt8]])
  ) -> PinEvaluation {
    let evaluation: PinEvaluation
    var certificates: [[UInt8]] = []
    do throws(HostNameError) {
      (evaluation, certificates) = verdict(try HostName(host))
    } catch {
      evaluation = PinEvaluation(host: host, outcome: .unreadableHost(error), decision: .refuse)
    }
    if evaluation.decision == .refuse { _ = judge.requestRefresh(after: evaluation) }
    judge.record(evaluation, of: ConnectionFacts(certificates: certificates))
    return evaluation
  }
}
