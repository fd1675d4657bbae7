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
  ///   must not keep the session: the client's own hold a transport without the client
  ///   (``PinnedTransport/withoutClient()``), an app's session holds its transport.
  package init(_ role: SessionRole, transport: @escaping @Sendable () -> PinnedTransport?) {
    self.role = role
    self.transport = transport
  }

  // MARK: Tasks

  /// Whether a new task may go out; if not, cancel it.
  ///
  /// - Parameter urls: its original and its current one. They differ if it goes on from what an earlier one left, and
  ///   neither may be named; each that is has to be allowed.
  package func admits(_ kind: TaskKind, to urls: URL?...) -> Bool {
    // Before the task goes out, so that it meets no connection from before a change of pins.
    transport()?.followPins()
    let named = urls.compactMap { $0 }
    guard !named.isEmpty else { return admits(kind, to: nil, from: nil) }
    return named.allSatisfy { admits(kind, to: $0, from: nil) }
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
  ///
  /// - Parameter requests: where the tasks go that it may be about; `nil`: not looked up yet.
  package func step(
    about challenge: ChallengeRule.Challenge, requests: [URL?]?
  ) -> ChallengeRule.Step {
    guard let transport = transport() else { return .cancel }
    return ChallengeRule.step(
      about: challenge, isListed: transport.lists(challenge.host), requests: requests, in: role)
  }

  /// Whether a server may be trusted. The handshake waits, at most for one refresh.
  ///
  /// - Parameter challenged: when the challenge arrived, by the wall clock, in seconds.
  func accepts(
    host: String, port: Int, challenged: Double, validate: ConnectionJudgement.Validate
  ) async -> Bool {
    guard let transport = transport() else { return false }
    if case .refusing = role { return false }
    let (_, proof) = await judgement(by: transport).judge(
      host: host, port: port, challenged: challenged, validate: validate)
    guard let proof else { return false }
    proofs.withLock { $0.keep(proof) }
    // Pins that changed since the verdict have flushed the connections that stood then; this one was not among them.
    if transport.judge.currentGeneration() != proof.generation {
      let evaluation = judgeAgain(proof, by: transport)
      if evaluation.decision == .refuse { return refuse(evaluation, proof, by: transport) }
    }
    // Listed meanwhile: its connections belong to another session.
    if role == .unlisted, transport.judge.lists(proof.host) {
      let refusal = PinEvaluation(
        host: host, outcome: .unjudged("the host was listed meanwhile"), decision: .refuse)
      return refuse(refusal, proof, by: transport)
    }
    return true
  }

  private func judgement(by transport: PinnedTransport) -> ConnectionJudgement {
    ConnectionJudgement(transport: transport, acceptsUnlisted: role == .unlisted)
  }

  /// Turns an accepted handshake down after all. Always false.
  private func refuse(
    _ refusal: PinEvaluation, _ proof: ConnectionProof, by transport: PinnedTransport
  ) -> Bool {
    proofs.withLock { $0.replace(proof, by: nil) }
    transport.judge.record(refusal)
    transport.platform.recent.note(refusal, failing: proof.host, at: continuousSeconds())
    return false
  }

  // MARK: Afterwards

  /// Finds out whether the requests of a task that has ended had verdicts.
  ///
  /// - Parameter now: seconds of a clock that never goes back.
  /// - Returns: whether the session's connections are to be given up: one without a verdict would go on carrying
  ///   requests.
  @discardableResult
  package func finished(
    _ transactions: [TransactionFacts], at now: Int64 = continuousSeconds()
  ) -> Bool {
    guard let transport = transport() else { return false }
    var isToFlush = false
    for facts in transactions {
      let generation = transport.judge.currentGeneration()
      switch proofs.withLock({ $0.finding(about: facts, generation: generation) }) {
      case .judged: break
      case .told(let evaluation): transport.judge.record(evaluation)
      case .unjudged(let host, _)
      where facts.isReused && role == .unlisted && !transport.judge.lists(host):
        // HTTP/2. What was judged for one host without an entry holds for all that the certificate covers.
        break
      case .unjudged(let host, let why):
        isToFlush = giveUp(host, why, by: transport, at: now) || isToFlush
      case .judgeAgain(let proof):
        guard judgeAgain(proof, by: transport).decision == .refuse else { continue }
        isToFlush =
          giveUp(
            proof.host, "it went over a connection from before a change of pins", by: transport,
            at: now) || isToFlush
      }
    }
    transport.followPins()
    return isToFlush
  }

  /// Tells of a request that went out without a verdict.
  ///
  /// - Returns: whether the session is to be flushed for it.
  private func giveUp(
    _ host: HostName, _ why: String, by transport: PinnedTransport, at now: Int64
  ) -> Bool {
    transport.judge.record(
      PinEvaluation(host: host.description, outcome: .unjudged(why), decision: .accept))
    return proofs.withLock { $0.startFlush(for: host, at: now) }
  }

  /// Judges what a host had shown by the pins of now, and renews the proof if they accept it. If not, it stays: each
  /// request that went over its connection is judged again, and told.
  private func judgeAgain(_ proof: ConnectionProof, by transport: PinnedTransport) -> PinEvaluation
  {
    let (evaluation, generation) = judgement(by: transport).judged(proof.evidence, host: proof.host)
    guard evaluation.decision == .accept else { return evaluation }
    let renewed = ConnectionProof(
      host: proof.host, evidence: proof.evidence, generation: generation,
      challenged: proof.challenged)
    proofs.withLock { $0.replace(proof, by: renewed) }
    return evaluation
  }

  /// The session was invalidated: it has no connections to flush.
  func ended(_ session: URLSession) { transport()?.platform.sessions.remove(session) }
}
