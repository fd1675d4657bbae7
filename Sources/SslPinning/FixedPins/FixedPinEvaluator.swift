import SslPinningPlatform
import SslPinningRules

/// Answers the transports from pins that never change.
///
/// - Verdicts come from memory.
/// - There is nothing newer to be had: a mismatch is refused at once.
final class FixedPinEvaluator: PinEvaluating {
  private let clocks: Clocks
  private let policy: PinningPolicy
  private let state: Locked<ActivePolicy>
  let evaluations = Broadcast<PinEvaluation>()
  let events: Broadcast<PinningEvent>
  let reporter: FailureReporter?

  init(
    policy: PinningPolicy, clocks: Clocks, events: Broadcast<PinningEvent>,
    reporter: FailureReporter?
  ) {
    self.events = events
    self.reporter = reporter
    self.clocks = clocks
    self.policy = policy
    state = Locked(ActivePolicy(policy, at: TrustTime(clock: clocks.wall())))
  }

  var generation: UInt64 {
    let now = TrustTime(clock: clocks.wall())
    return state.withLock { $0.generation(at: now) }
  }

  /// Nobody vouches for a time here: the system's clock.
  var time: TrustTime? { nil }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    policy.evaluate(evidence, host: host, at: clocks.wall())
  }

  func lists(_ host: HostName) -> Bool { policy.entry(for: host) != nil }

  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {
    evaluations.send(evaluation)
    reporter?.report(evaluation, of: connection)
    if case .unjudged = evaluation.outcome, evaluation.decision == .accept {
      events.send(.unjudgedReuse(evaluation))
    }
  }

  func requestRefresh(after refusal: PinEvaluation) -> Bool { false }

  func refresh(after refusal: PinEvaluation) async {}
}
