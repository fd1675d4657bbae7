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

/// The oldest statement that an app still believes: what stood in its registry when it was built.
///
/// Other shipped keys begin another state, and with it a client that has seen nothing yet: for that moment
/// anything that is signed well and not expired would do. A minimum beside the keys closes it. Epochs are
/// compared first, so an `issued` far ahead, which a thief signed, is healed by a new epoch here as well.
public struct RegistryMinimum: Hashable, Sendable, Comparable {
  /// The key set's epoch.
  public var epoch: Int64
  /// The statement's `issued` within that epoch, in Unix seconds.
  public var issued: Int64

  /// A minimum.
  ///
  /// - Parameters:
  ///   - epoch: the key set's epoch.
  ///   - issued: the statement's `issued`, in Unix seconds.
  public init(epoch: Int64, issued: Int64) {
    (self.epoch, self.issued) = (epoch, issued)
  }

  /// What a statement says of itself.
  init(_ statement: Statement) {
    self.init(epoch: statement.number.epoch, issued: statement.issued)
  }

  public static func < (left: RegistryMinimum, right: RegistryMinimum) -> Bool {
    (left.epoch, left.issued) < (right.epoch, right.issued)
  }
}

extension RegistryMinimum: CustomStringConvertible {
  /// Epoch and time.
  public var description: String { "epoch \(epoch), issued \(RFC3339.text(issued))" }
}

/// How large a registry document may be. A document beyond a limit is refused before it is parsed.
public struct RegistryLimits: Hashable, Sendable {
  /// Bytes of the whole document: 4 MiB by default, some 20 000 entries.
  public var maximumBytes: Int
  /// Days that a host which vanished from a newer document keeps its last pins.
  public var vanishedHostDays: Int64
  /// Documents that are kept for the sake of hosts that vanished since: 64 by default. The hosts
  /// of the oldest go beyond that.
  public var maximumOlderDocuments: Int

  /// Limits; the defaults are those of `docs/registry-format.md`.
  public init(
    maximumBytes: Int = 4 << 20, vanishedHostDays: Int64 = 30, maximumOlderDocuments: Int = 64
  ) {
    self.maximumBytes = max(0, maximumBytes)
    self.vanishedHostDays = vanishedHostDays
    self.maximumOlderDocuments = maximumOlderDocuments
  }

  /// The defaults.
  public static let standard = RegistryLimits()

  /// Whether a host that vanished at `since` still has its pins at `now`, both in Unix seconds.
  func keepsVanished(since: Int64, at now: Int64) -> Bool {
    let (seconds, isForEver) = vanishedHostDays.multipliedReportingOverflow(by: 86400)
    let (end, isBeyondTime) = since.addingReportingOverflow(seconds)
    return (isForEver || isBeyondTime) ? vanishedHostDays > 0 : now <= end
  }
}
