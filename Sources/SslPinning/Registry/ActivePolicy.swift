import SslPinningRules

/// The policy that verdicts come from, and the number by which transports know whether their last
/// verdict still stands.
///
/// - The number grows with every change of policy, and whenever a pin or the registry expires: open
///   connections are judged again.
/// - It grows where the clock is set back, too: what had expired counts again, and expires again.
struct ActivePolicy: Sendable {
  private(set) var policy: PinningPolicy
  private var number: UInt64 = 1
  /// Unix time in seconds after which something expires and verdicts may turn out differently.
  private var standsUntil: Int64?
  /// The latest time of the clock (Unix seconds) at which ``standsUntil`` was asked for.
  private var standsFrom: Int64

  init(_ policy: PinningPolicy, at now: TrustTime) {
    self.policy = policy
    standsUntil = policy.unchangedUntil(from: now)
    standsFrom = now.clock
  }

  /// Puts another policy in force.
  mutating func replace(with policy: PinningPolicy, at now: TrustTime) {
    self.policy = policy
    standsUntil = policy.unchangedUntil(from: now)
    standsFrom = now.clock
    number += 1
  }

  /// Puts a policy in force under which every verdict is the same, such as one with a newer stamp.
  mutating func restamp(_ policy: PinningPolicy) { self.policy = policy }

  /// Counts what has expired up to `now`.
  ///
  /// - Returns: the number of the policy at `now`.
  mutating func advance(to now: TrustTime) -> UInt64 {
    if now.clock < standsFrom || standsUntil.map({ now.clock > $0 }) ?? false {
      number += 1
      standsUntil = policy.unchangedUntil(from: now)
      standsFrom = now.clock
    }
    return number
  }
}
