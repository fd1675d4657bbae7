import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A judge whose pins the test sets: host patterns to identities, everything else unlisted.
final class ScriptedJudge: PinEvaluating {
  private struct State {
    var policy: PinningPolicy
    var generation: UInt64 = 1
    var recorded: [PinEvaluation] = []
    var refreshes: [PinEvaluation] = []
    var time: TrustTime?
    var onRefresh: (@Sendable (ScriptedJudge) async -> Void)?
    var onRecord: (@Sendable (ScriptedJudge, PinEvaluation) -> Void)?
  }

  private let state: Locked<State>
  private let trust: TrustMode

  init(_ pins: [String: ServerIdentity], trust: TrustMode) throws {
    self.trust = trust
    state = Locked(State(policy: try Self.policy(pins, trust: trust, unlisted: .refuse)))
  }

  /// Puts other pins in force, as a refreshed registry does.
  func pin(
    _ pins: [String: ServerIdentity], denied: [ServerIdentity] = [],
    unlisted: UnlistedHosts = .refuse
  ) throws {
    apply(try Self.policy(pins, denied: denied, trust: trust, unlisted: unlisted))
  }

  /// Puts a policy in force.
  func apply(_ policy: PinningPolicy) {
    state.withLock {
      $0.policy = policy
      $0.generation += 1
    }
  }

  /// What a refresh does; without one, refusals are final at once.
  func onRefresh(_ body: (@Sendable (ScriptedJudge) async -> Void)?) {
    state.withLock { $0.onRefresh = body }
  }

  /// What happens when a verdict is told.
  func onRecord(_ body: @escaping @Sendable (ScriptedJudge, PinEvaluation) -> Void) {
    state.withLock { $0.onRecord = body }
  }

  /// Sets the times that chains are held to; `nil` means the system's clock.
  func setTime(_ time: TrustTime?) { state.withLock { $0.time = time } }

  var time: TrustTime? { state.withLock { $0.time } }
  var recorded: [PinEvaluation] { state.withLock { $0.recorded } }
  var refreshes: [PinEvaluation] { state.withLock { $0.refreshes } }

  private static func policy(
    _ pins: [String: ServerIdentity], denied: [ServerIdentity] = [], trust: TrustMode,
    unlisted: UnlistedHosts
  ) throws -> PinningPolicy {
    try PinningPolicy(
      entries: pins.map { pattern, identity in
        PolicyEntry(
          try HostPattern(pattern),
          leaf: PinSet([Pin(try SPKIPin(certificateDER: identity.leaf.der))]))
      },
      denied: Set(try denied.map { try SPKIPin(certificateDER: $0.leaf.der) }), trust: trust,
      unlistedHosts: unlisted)
  }

  func currentGeneration() -> UInt64 { state.withLock { $0.generation } }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    state.withLock { $0.policy }
      .evaluate(evidence, host: host, at: Int64(Date().timeIntervalSince1970))
  }

  func lists(_ host: HostName) -> Bool { state.withLock { $0.policy }.entry(for: host) != nil }

  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {
    let body = state.withLock { state in
      state.recorded.append(evaluation)
      return state.onRecord
    }
    body?(self, evaluation)
  }

  func requestRefresh(after refusal: PinEvaluation) -> Bool {
    refusal.couldChangeAfterRefresh && state.withLock { $0.onRefresh != nil }
  }

  func refresh(after refusal: PinEvaluation) async {
    let body = state.withLock { state in
      state.refreshes.append(refusal)
      return state.onRefresh
    }
    await body?(self)
  }
}
