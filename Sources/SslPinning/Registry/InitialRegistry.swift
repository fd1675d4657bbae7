import SslPinningRules

/// The registry that a client begins with before it has asked the network: what is stored, what the
/// app ships, or what both know together; or what was handed to it.
struct InitialRegistry: Sendable {
  let registry: TrustedRegistry
  let origin: RegistryStatus.Origin
  /// The tag of its document.
  let tag: DocumentTag?

  /// A registry that was handed over, where there is no other.
  init(handed registry: TrustedRegistry) {
    (self.registry, origin, tag) = (registry, .handed, nil)
  }

  /// - Returns: `nil` where there is neither.
  init?(
    stored: StateStore.Stored, bundled: TrustedRegistry?, at clock: Int64
  ) {
    switch (stored.registry, bundled) {
    case (let cached?, let bundled?):
      registry = cached.merged(with: bundled, at: clock)
      // The bundle's only where the app is newer than what an earlier version of it had fetched.
      origin = registry.stamp.payloadDigest == cached.stamp.payloadDigest ? .cache : .bundle
    case (let cached?, nil): (registry, origin) = (cached, .cache)
    case (nil, let bundled?): (registry, origin) = (bundled.knowing(stored.learned), .bundle)
    case (nil, nil): return nil
    }
    let registry = registry
    tag = stored.registry.flatMap { registry.isSameDocument(as: $0) ? stored.tag : nil }
  }

  /// Whether it serves without asking the network first.
  func isFresh(for schedule: RefreshSchedule, at clock: Int64) -> Bool {
    origin == .cache && !registry.isExpired(at: clock)
      && schedule.isFresh(age: registry.stamp.age(at: clock))
  }
}
