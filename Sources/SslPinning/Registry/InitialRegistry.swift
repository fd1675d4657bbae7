import SslPinningPlatform
import SslPinningRules

/// The registry that a client begins with before it has asked the network: what is stored, what the
/// app ships, or what both know together; or what was handed to it.
struct InitialRegistry: Sendable {
  let registry: TrustedRegistry
  let origin: RegistryStatus.Origin
  /// The tag of its document.
  let tag: DocumentTag?
  /// Whether to store it before the registry answers: it has a version, and the store does not know all of it. A bundle
  /// without a version is not stored, since the next bundle could not be told to be newer.
  let isNews: Bool

  /// A registry that was handed over, where there is no other.
  init(handed registry: TrustedRegistry) {
    (self.registry, origin, tag, isNews) = (registry, .handed, nil, true)
  }

  /// - Returns: `nil` where there is neither.
  init?(
    stored: StateStore.Stored, bundled: TrustedRegistry?, at clock: Int64
  ) {
    switch (stored.registry, bundled) {
    case (let cached?, let bundled?):
      registry = cached.merged(with: bundled, at: clock)
      // A stored bundle that nobody confirmed since is still the app's.
      let isBundle =
        registry.isSameDocument(as: bundled)
        && registry.stamp.confirmed == bundled.stamp.confirmed
      origin = isBundle ? .bundle : .cache
    case (let cached?, nil): (registry, origin) = (cached, .cache)
    case (nil, let bundled?): (registry, origin) = (bundled.knowing(stored.learned), .bundle)
    case (nil, nil): return nil
    }
    let registry = registry
    tag = stored.registry.flatMap { registry.isSameDocument(as: $0) ? stored.tag : nil }
    isNews =
      registry.stamp.version != nil
      && stored.registry.map { registry.knowsMore(than: $0) } ?? true
  }

  /// Whether it serves without asking the network first.
  func isFresh(for schedule: RefreshSchedule, at clock: Int64) -> Bool {
    origin == .cache && !registry.isExpired(at: clock) && !registry.stamp.isStale(at: clock)
      && schedule.isFresh(age: registry.stamp.age(at: clock))
  }
}

extension RegistryTrust {
  /// What the configuration ships.
  ///
  /// - Parameter name: the registry's name where the configuration gives none.
  init(_ config: SslPinningConfig, name: String) throws(SslPinningError) {
    let name = config.registryName ?? name
    let limits = RegistryLimits(maximumBytes: config.maximumRegistryBytes)
    let needsNone = config.signingKeyBase64.isEmpty && !config.rootKeys.isEmpty
    var signingKey: VerificationKey?
    var rootKeys: [TrustKey] = []
    do throws(VerificationKeyError) {
      signingKey = needsNone ? nil : try VerificationKey(config.signingKeyBase64)
      for key in config.rootKeys { rootKeys.append(try TrustKey(key)) }
    } catch { throw .badSigningKey(error) }
    do throws(DocumentFault) {
      // Keys that failed to load must not leave the app to a single key and format 1.
      if rootKeys.isEmpty, let threshold = config.rootThreshold {
        throw .threshold(Int64(threshold), keys: 0)
      }
      if rootKeys.isEmpty, let signingKey {
        try self.init(
          registry: name, signingKey: signingKey,
          requiresStatement: config.requireStatement ?? false, minimum: config.minimumRegistry,
          limits: limits)
      } else {
        guard let threshold = config.rootThreshold ?? (rootKeys.count == 1 ? 1 : nil) else {
          throw .threshold(0, keys: rootKeys.count)
        }
        try self.init(
          registry: name, rootKeys: rootKeys, threshold: threshold,
          signingKey: signingKey, requiresStatement: config.requireStatement ?? true,
          minimum: config.minimumRegistry, limits: limits)
      }
    } catch { throw .badRootKeys(error) }
  }
}

extension StateStore {
  /// Where the configuration wants its registry kept; `nil` for nowhere.
  init?(_ config: SslPinningConfig, trust: RegistryTrust) {
    guard let directory = config.storage.path else { return nil }
    self.init(directory: directory, identity: config.endpointUrl, trust: trust)
  }
}
