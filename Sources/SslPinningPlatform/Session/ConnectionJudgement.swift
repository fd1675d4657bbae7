import Foundation
import SslPinningRules

/// The verdict on one handshake, its one refresh included, for platforms that ask about each.
///
/// - A refusal that newer pins could turn awaits the judge's refresh once, at most
///   ``PinnedTransport/longestRefresh``; the second verdict is final. The handshake waits, so nothing of the request
///   was sent.
/// - Pins that change while the platform evaluates are asked again.
struct ConnectionJudgement: Sendable {
  /// Validates the chain for a host under a transport's validator, its dates at one of these moments (Unix seconds; none: now), and names the
  /// certificates in DER, leaf first.
  typealias Validate =
    @Sendable (ChainValidator, HostName, [Int64]) async -> (
      evidence: ChainEvidence, certificates: [[UInt8]]
    )

  let transport: PinnedTransport
  /// Whether a policy's leave for unlisted hosts counts; not on a pinned session, see ``SessionRole/pinned``.
  let acceptsUnlisted: Bool

  /// Judges and records.
  ///
  /// - Parameter challenged: when the challenge arrived, by the wall clock, in seconds.
  /// - Returns: the verdict, and a proof if the connection is accepted.
  func judge(
    host spelling: String, port: Int, challenged: Double, validate: Validate
  ) async -> (evaluation: PinEvaluation, proof: ConnectionProof?) {
    let host: HostName
    do throws(HostNameError) { host = try HostName(spelling) } catch {
      let refusal = PinEvaluation(
        host: spelling, outcome: .unreadableHost(error), decision: .refuse)
      transport.judge.record(refusal)
      return (refusal, nil)
    }
    var (evidence, certificates) = await validate(
      transport.validator, host, transport.judge.time?.dates ?? [])
    var (evaluation, generation) = judged(evidence, host: host)
    if evaluation.decision == .refuse, transport.judge.requestRefresh(after: evaluation) {
      await refresh(after: evaluation)
      if case .chainRejected = evaluation.outcome {
        // A newer statement may say that a certificate which looked early to this clock is valid by now.
        (evidence, certificates) = await validate(
          transport.validator, host, transport.judge.time?.dates ?? [])
      }
      (evaluation, generation) = judged(evidence, host: host)
    }
    transport.judge.record(
      evaluation, of: ConnectionFacts(port: port, certificates: certificates))
    transport.followPins()
    guard evaluation.decision == .accept else {
      transport.platform.recent.note(evaluation, failing: host, at: continuousSeconds())
      return (evaluation, nil)
    }
    transport.platform.recent.forget(host, at: continuousSeconds())
    return (
      evaluation,
      ConnectionProof(
        host: host, evidence: evidence, generation: generation, challenged: challenged)
    )
  }

  /// The verdict of now, and the generation of pins that gave it.
  func judged(_ evidence: ChainEvidence, host: HostName) -> (PinEvaluation, UInt64) {
    var generation = transport.judge.currentGeneration()
    var evaluation = transport.judge.evaluate(evidence, host: host)
    // A change meanwhile has flushed the connections that stood then; this one was not among them.
    for _ in 0..<3 where transport.judge.currentGeneration() != generation {
      generation = transport.judge.currentGeneration()
      evaluation = transport.judge.evaluate(evidence, host: host)
    }
    guard !acceptsUnlisted, evaluation.outcome == .unlisted, evaluation.decision == .accept
    else { return (evaluation, generation) }
    let refusal = PinEvaluation(
      host: evaluation.host, outcome: .unlisted, decision: .refuse,
      presented: evaluation.presented, registry: evaluation.registry)
    return (refusal, generation)
  }

  private func refresh(after refusal: PinEvaluation) async {
    let judge = transport.judge
    // The system's own clock: a handshake waits for real.
    let nanoseconds = UInt64(max(0, min(transport.longestRefresh, 86400)) * 1_000_000_000)
    await firstOf(
      { await judge.refresh(after: refusal) },
      { try? await Task.sleep(nanoseconds: nanoseconds) })
  }
}
