/// What a client holds a registry to: all that does not come from the registry itself.
public struct RegistryTrust: Sendable {
  /// The name that key sets and statements must carry. By default the last component of the URL's
  /// path, so that one registry never passes for another that the same keys sign.
  public let registry: String
  /// Set 0, what the app ships.
  public let shipped: KeySet
  /// The RSA key of format 1; `nil` where the app ships none, and then no document passes without a
  /// statement.
  public let format1Key: (any SignatureVerifier)?
  /// Whether the very first document must carry a statement. Without this a first start cannot see
  /// that somebody stripped it.
  public let requiresStatement: Bool
  /// Nothing older than this is believed, and no document without a statement; `nil`: anything will do
  /// for a first one.
  public let minimum: RegistryMinimum?
  /// Sizes and times.
  public let limits: RegistryLimits

  let crypto: any RegistryCrypto

  /// Trust in what an app ships.
  ///
  /// - Parameters:
  ///   - registry: the name that key sets and statements must carry.
  ///   - shipped: signs key sets as the root of set 0, and statements of epoch 0.
  ///   - format1Key: the RSA key of format 1; `nil`: no document passes without a statement.
  ///   - requiresStatement: whether the very first document must carry a statement.
  ///   - minimum: nothing older is believed.
  ///   - limits: sizes in bytes and times in days.
  ///   - crypto: the platform's digest and signature checks.
  public init(
    registry: String, shipped: KeyRole, format1Key: (any SignatureVerifier)?,
    requiresStatement: Bool, minimum: RegistryMinimum? = nil, limits: RegistryLimits = .standard,
    crypto: some RegistryCrypto
  ) {
    self.init(
      registry: registry,
      shipped: KeySet(registry: registry, epoch: 0, root: shipped, online: shipped),
      format1Key: format1Key, requiresStatement: requiresStatement,
      minimum: minimum, limits: limits, crypto: crypto)
  }

  private init(
    registry: String, shipped: KeySet, format1Key: (any SignatureVerifier)?,
    requiresStatement: Bool, minimum: RegistryMinimum?, limits: RegistryLimits,
    crypto: any RegistryCrypto
  ) {
    self.registry = registry
    self.shipped = shipped
    self.format1Key = format1Key
    self.requiresStatement = requiresStatement
    self.minimum = minimum
    self.limits = limits
    self.crypto = crypto
  }

  /// The ids of the shipped keys and their threshold: two apps with the same of these trust alike.
  package var shippedKeyIDs: [String] {
    shipped.root.keys.map(\.id.base64).sorted() + ["\(shipped.root.threshold)"]
  }

  /// The same, for documents that were believed before the newest one: neither what the app asks of a
  /// first document is asked of them, nor its minimum.
  var ofOlderDocuments: RegistryTrust {
    RegistryTrust(
      registry: registry, shipped: shipped, format1Key: format1Key, requiresStatement: false,
      minimum: nil, limits: limits, crypto: crypto)
  }
}
