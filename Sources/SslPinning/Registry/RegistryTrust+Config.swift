import SslPinningPlatform
import SslPinningRules

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
