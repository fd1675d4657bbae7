import SslPinningRules

/// Trust in keys as apps ship them.
extension RegistryTrust {
  /// One RSA key for everything: the root and the online key of set 0, and the key of format 1.
  ///
  /// A first start cannot see that a statement was stripped, unless `requiresStatement`.
  ///
  /// - Throws: `DocumentFault`; not for a key that was read.
  public init(
    registry: String, signingKey: VerificationKey, requiresStatement: Bool = false,
    minimum: RegistryMinimum? = nil, limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    try self.init(
      registry: registry, rootKeys: [TrustKey(signingKey)], threshold: 1, signingKey: signingKey,
      requiresStatement: requiresStatement, minimum: minimum, limits: limits)
  }

  /// Root keys, so many of which must sign a key set, or a statement as long as there is no key set.
  ///
  /// - Parameters:
  ///   - registry: the name that key sets and statements must carry.
  ///   - rootKeys: the keys of set 0, each once.
  ///   - threshold: how many of them must sign.
  ///   - signingKey: the key of format 1, for a registry that was retired.
  ///   - requiresStatement: whether the very first document must carry a statement.
  ///   - minimum: nothing older is believed.
  ///   - limits: sizes in bytes and times in days.
  /// - Throws: ``SslPinningRules/DocumentFault`` for a key that stands twice, and a threshold of zero or above the
  ///   number of keys.
  public init(
    registry: String, rootKeys: [TrustKey], threshold: Int, signingKey: VerificationKey? = nil,
    requiresStatement: Bool = true, minimum: RegistryMinimum? = nil,
    limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    let crypto = PlatformRegistryCrypto()
    var keys: [RoleKey] = []
    for key in rootKeys { keys.append(try key.roleKey) }
    self.init(
      registry: registry, shipped: try KeyRole(keys: keys, threshold: threshold),
      format1Key: signingKey, requiresStatement: requiresStatement, minimum: minimum,
      limits: limits, crypto: crypto)
  }
}

extension TrustKey {
  /// The key as key sets carry it.
  ///
  /// - Throws: ``SslPinningRules/DocumentFault`` where it is not the DER of its algorithm.
  public var roleKey: RoleKey {
    get throws(DocumentFault) {
      try RoleKey(
        algorithm: algorithm.rawValue, spki: spkiDER, crypto: PlatformRegistryCrypto())
    }
  }
}
