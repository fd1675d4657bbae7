import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Decides what leaves over one `URLSession` of Apple's systems. The session's delegate only carries calls
/// here and answers back; the decisions are the rules of ``TaskRule``, ``ChallengeRule`` and
/// ``ConnectionProofs``.
///
/// - A refusal is told as a verdict, and found behind the error of the task that is cancelled for it.
/// - Closed: once the transport is gone, nothing leaves.
package final class SessionDoor: Sendable {
  private let role: SessionRole
  private let transport: @Sendable () -> PinnedTransport?
  private let proofs = Locked(ConnectionProofs())

  /// - Parameter transport: a session keeps its delegate until it is invalidated, and so this closure. What it keeps
  ///   must not keep the session: the client's own two hold a transport without the client
  ///   (``PinnedTransport/withoutClient()``), an app's session holds its transport.
  package init(_ role: SessionRole, transport: @escaping @Sendable () -> PinnedTransport?) {
    self.role = role
    self.transport = transport
  }

  // MARK: Tasks

  /// Whether a new task may go out; if not, cancel it.
  package func admits(_ kind: TaskKind, to url: URL?) -> Bool {
    // Before the task goes out, so that it meets no connection from before a change of pins.
    transport()?.followPins()
    return admits(kind, to: url, from: nil)
  }

  /// Whether a redirect may be followed; if not, cancel its task.
  ///
  /// - Parameter source: the URL that leads on.
  package func follows(to url: URL?, from source: URL?) -> Bool {
    admits(.request, to: url, from: source)
  }

  private func admits(_ kind: TaskKind, to url: URL?, from source: URL?) -> Bool {
    guard let transport = transport() else { return false }
    guard let outcome = TaskRule.fault(of: kind, to: url, in: role) else { return true }
    let refusal = PinEvaluation(host: url?.host ?? "", outcome: outcome, decision: .refuse)
    transport.judge.record(refusal)
    // The error may name the URL that led here, or the one it led to.
    for failing in [source?.host, url?.host] {
      guard let failing, let host = try? HostName(failing) else { continue }
      transport.platform.recent.note(refusal, failing: host, at: continuousSeconds())
    }
    return false
  }

  // MARK: Challenges

  /// What to do with a challenge.
  package func step(
    at level: ChallengeRule.Level, about method: ChallengeRule.Method, isProxy: Bool, hasTrust: Bool
  ) -> ChallengeRule.Step {
    guard transport() != nil else { return .cancel }
    return ChallengeRule.step(
      at: level, about: method, isProxy: isProxy, hasTrust: hasTrust, in: role)
  }

  /// Whether a server may be trusted. The handshake waits, at most for one refresh.
  ///
  /// - Parameter challenged: when the challenge arrived, by the wall clock, in seconds.
  func accepts(
    host: String, port: Int, challenged: Double, validate: ConnectionJudgement.Validate
  ) async -> Bool {
    guard let transport = transport() else { return false }
    if case .refusing = role { return false }
    let judgement = ConnectionJudgement(
      transport: transport, acceptsUnlisted: role == .unlisted)
    let (_, proof) = await judgement.verdict(
      host: host, port: port, challenged: challenged, validate: validate)
    guard let proof else { return false }
    if role == .unlisted, transport.judge.lists(proof.host) {
      // Listed meanwhile: its connections belong to the other session.
      let refusal = PinEvaluation(
        host: host, outcome: .unjudged("the host was listed meanwhile"), decision: .refuse)
      transport.judge.record(refusal)
      transport.platform.recent.note(refusal, failing: proof.host, at: continuousSeconds())
      return false
    }
    proofs.withLock { $0.keep(proof) }
    return true
  }

  // MARK: Afterwards

  /// Finds out whether the requests of a task that were answered from the network had verdicts.
  package func finished(_ answered: [TransactionFacts]) {
    guard let transport = transport() else { return }
    for facts in answered {
      let generation = transport.judge.generation
      switch proofs.withLock({ $0.finding(about: facts, generation: generation) }) {
      case .judged: break
      case .told(let evaluation): transport.judge.record(evaluation)
      case .judgeAgain(let proof): judgeAgain(proof, by: transport)
      }
    }
    transport.followPins()
  }

  private func judgeAgain(_ proof: ConnectionProof, by transport: PinnedTransport) {
    let judgement = ConnectionJudgement(transport: transport, acceptsUnlisted: role == .unlisted)
    let (evaluation, generation) = judgement.judged(proof.evidence, host: proof.host)
    guard evaluation.decision == .accept else {
      proofs.withLock { $0.replace(proof, by: nil) }
      transport.judge.record(
        PinEvaluation(
          host: proof.host.description,
          outcome: .unjudged("it went over a connection from before a change of pins"),
          decision: .accept))
      return
    }
    let renewed = ConnectionProof(
      host: proof.host, evidence: proof.evidence, generation: generation,
      challenged: proof.challenged)
    proofs.withLock { $0.replace(proof, by: renewed) }
  }

  /// The session was invalidated: it has no connections to flush.
  func ended(_ session: URLSession) { transport()?.platform.sessions.remove(session) }
}
