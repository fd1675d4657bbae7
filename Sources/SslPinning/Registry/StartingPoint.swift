import Pinning

/// The registry that a client begins with before it has asked the network: what is stored, what the
/// app ships, or what both know together.
struct StartingPoint: Sendable {
  let registry: TrustedRegistry
  let origin: RegistryStatus.Origin

  /// - Returns: `nil` where there is neither.
  init?(
    cached: TrustedRegistry?, bundled: TrustedRegistry?, learned: LearnedKeySets = .none,
    at clock: Int64
  ) {
    switch (cached, bundled) {
    case (let cached?, let bundled?):
      registry = cached.merged(with: bundled, at: clock)
      // The bundle's only where the app is newer than what an earlier version of it had fetched.
      origin = registry.stamp.payloadDigest == cached.stamp.payloadDigest ? .cache : .bundle
    case (let cached?, nil): (registry, origin) = (cached, .cache)
    case (nil, let bundled?): (registry, origin) = (bundled.knowing(learned), .bundle)
    case (nil, nil): return nil
    }
  }

  /// Whether it serves without asking the network first.
  func isFresh(for schedule: RefreshSchedule, at clock: Int64) -> Bool {
    origin == .cache && !registry.isExpired(at: clock)
      && schedule.isFresh(age: registry.stamp.age(at: clock))
  }
}
