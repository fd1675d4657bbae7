import Pinning

/// Trust in keys as apps ship them.
extension RegistryTrust {
  /// One RSA key for everything: the root and the online key of set 0, and the key of format 1.
  ///
  /// A first start cannot see that a statement was stripped, unless `requiresStatement`.
  public init(
    registry: String, signingKey: VerificationKey, requiresStatement: Bool = false,
    limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    try self.init(
      registry: registry, rootKeys: [TrustKey(signingKey)], threshold: 1, signingKey: signingKey,
      requiresStatement: requiresStatement, limits: limits)
  }

  /// Root keys, so many of which must sign a key set, or a statement as long as there is no key set.
  ///
  /// - Parameter signingKey: the key of format 1, for a registry that was retired.
  /// - Throws: ``DocumentFault`` for a key that stands twice, and a threshold of zero or above the
  ///   number of keys.
  public init(
    registry: String, rootKeys: [TrustKey], threshold: Int, signingKey: VerificationKey? = nil,
    requiresStatement: Bool = true, limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    let crypto = PlatformRegistryCrypto()
    var keys: [RoleKey] = []
    for key in rootKeys { keys.append(try key.roleKey) }
    self.init(
      registry: registry, shipped: try KeyRole(keys: keys, threshold: threshold),
      format1Key: signingKey, requiresStatement: requiresStatement, limits: limits, crypto: crypto)
  }
}

extension TrustKey {
  /// The key as key sets carry it.
  public var roleKey: RoleKey {
    get throws(DocumentFault) {
      try RoleKey(
        algorithm: algorithm.rawValue, spki: spkiDER, crypto: PlatformRegistryCrypto())
    }
  }
}
