/// A client's requirements for a registry: everything that does not come from the registry itself.
public struct RegistryTrust: Sendable {
  /// The name that key sets and statements must carry, by default the last component of the URL's path, so
  /// that a registry never passes for another one with the same keys.
  public let registry: String
  /// Key set 0, which the app ships.
  public let shipped: KeySet
  /// The RSA key of format 1; `nil` if the app ships none, and then no document passes without a statement.
  public let format1Key: (any SignatureVerifier)?
  /// Whether the very first document must carry a statement. Otherwise a first start cannot notice that an
  /// attacker has removed it.
  public let requiresStatement: Bool
  /// Nothing older than this is believed, and no document without a statement; `nil`: the first document may
  /// have any age.
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
  ///   - minimum: nothing older than this is believed.
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

  /// The ids of the shipped keys and their threshold, which identify an app's trust.
  package var shippedKeyIDs: [String] {
    shipped.root.keys.map(\.id.base64).sorted() + ["\(shipped.root.threshold)"]
  }

  /// The same trust for documents that were believed before the newest one, without the requirements for a
  /// first document and without the minimum.
  var ofOlderDocuments: RegistryTrust {
    RegistryTrust(
      registry: registry, shipped: shipped, format1Key: format1Key, requiresStatement: false,
      minimum: nil, limits: limits, crypto: crypto)
  }
}

extension RegistryTrust {
  /// Refuses statements below the app's minimum.
  ///
  /// - Stored ones stay, or an app that is updated while its registry is unreachable could not start. They end by
  ///   themselves. A retired one does not: it was ended, or signed anew, and no client starts with it 90 days after the
  ///   minimum.
  /// - Within the epoch of a believed statement only numbers count, so that an `issued` that was ahead when the
  ///   app was built blocks nothing. An attacker gains nothing by that: he could as well have kept the client
  ///   where it was. By a retirement that was ended he would: it lets in documents without a statement, without end.
  /// - An epoch before the minimum's is over, whatever was believed in it.
  ///
  /// - Parameters:
  ///   - epoch: that of the believed statement, if there is one before this one.
  ///   - clock: Unix time in seconds.
  func checkMinimum(
    of statement: Statement, epoch: Int64?, _ origin: DocumentJudge.Origin, at clock: Int64
  ) throws(RegistryError) {
    guard let minimum, RegistryMinimum(statement) < minimum else { return }
    if origin == .stored {
      guard statement.isRetired, clock / 86_400 - minimum.issued / 86_400 >= 90 else { return }
    } else if !statement.isRetired, statement.number.epoch >= minimum.epoch,
      statement.number.epoch == epoch
    {
      return
    }
    throw .olderThanShipped(minimum)
  }
}

/// The oldest statement that an app still believes: the one in its registry when the app was built.
///
/// A client with new shipped keys starts with an empty state, and would accept any well-signed, unexpired
/// document. A minimum beside the keys prevents that. Epochs are compared first, so that a new epoch also heals
/// an `issued` far ahead that a thief signed.
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

  /// The epoch and `issued` of a statement.
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
  /// For how many days a host that vanished from a newer document keeps its last pins.
  public var vanishedHostDays: Int64
  /// How many older documents are kept for vanished hosts: 64 by default, and never more than twice
  /// ``maximumBytes`` of them, nor an entry for each 32 of these bytes. Beyond that, the oldest are dropped, with their hosts.
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

  /// A start reads and verifies all of them.
  var maximumOlderBytes: Int { maximumBytes > .max / 2 ? .max : 2 * maximumBytes }
  /// An honest entry has more bytes than that; those of a thief of the online key need not.
  var maximumOlderEntries: Int { maximumOlderBytes / 32 }

  /// Whether a host that vanished at `since` still has its pins at `now`, both in Unix seconds.
  func keepsVanished(since: Int64, at now: Int64) -> Bool {
    let (seconds, isForEver) = vanishedHostDays.multipliedReportingOverflow(by: 86400)
    let (end, isBeyondTime) = since.addingReportingOverflow(seconds)
    return (isForEver || isBeyondTime) ? vanishedHostDays > 0 : now <= end
  }
}
