import CanonicalJSON
import SslPinningRules

/// The key sets of one registry as their publisher keeps them: the whole chain from set 1.
///
/// - Every set but the newest is complete: signed by enough of the root of the set before it, and of
///   its own. A set is appended only to a complete one.
/// - The keys that an app ships are not in the chain, so whether they signed set 1 is not known here.
/// - A key that is in neither of the two roots does not sign, but for set 1, where it may be shipped.
public struct KeySetList: Sendable {
  /// The registry that all sets are for.
  public let registry: String
  /// In order; the first is set 1.
  public private(set) var sets: [SignedKeySet] = []

  /// A chain without a set.
  public init(registry: String) { self.registry = registry }

  /// Reads `keySets` as documents carry it.
  ///
  /// - Throws: ``KeySetListError``.
  public init(_ json: JSONValue) throws(KeySetListError) {
    guard let entries = json.arrayValue, let first = entries.first,
      let registry = first.objectValue?["keySet"]?.objectValue?["registry"]?.stringValue
    else { throw .notKeySets }
    self.init(registry: registry)
    for (index, entry) in entries.enumerated() {
      if let shortage = shortages.first { throw .incomplete(shortage) }
      let epoch = Int64(index) + 1
      do throws(DocumentFault) {
        sets.append(try SignedKeySet(entry, registry: registry, epoch: epoch))
      } catch { throw .invalid(epoch: epoch, error) }
    }
  }

  /// `keySets` as documents carry it.
  public var json: JSONValue { .array(sets.map(\.json)) }

  /// The set whose keys count, once it is complete.
  public var newest: SignedKeySet? { sets.last }

  /// Appends a set that nobody has signed.
  ///
  /// - Parameter expires: Unix time in seconds; `nil` means never.
  /// - Throws: ``KeySetListError/incomplete(_:)``.
  public mutating func append(
    root: KeyRole, online: KeyRole, expires: Int64? = nil
  ) throws(KeySetListError) {
    if let shortage = shortages.first { throw .incomplete(shortage) }
    sets.append(
      SignedKeySet(
        KeySet(
          registry: registry, epoch: Int64(sets.count) + 1, root: root, online: online,
          expires: expires)))
  }

  /// Signs the newest set.
  ///
  /// - Throws: ``KeySetListError/notARootKey(_:epoch:)`` and ``KeySetListError/signing(_:)``.
  public mutating func sign(with key: TrustSigningKey) throws(KeySetListError) {
    guard var set = sets.popLast() else { throw .notKeySets }
    defer { sets.append(set) }
    let roots = [set.keySet.root] + (sets.last.map { [$0.keySet.root] } ?? [])
    let isRoot = roots.contains { $0.keys.contains { $0.id == key.roleKey.id } }
    guard isRoot || sets.isEmpty else {
      throw .notARootKey(key.roleKey.id, epoch: set.keySet.epoch)
    }
    do throws(SigningKeyError) { try set.sign(with: key) } catch { throw .signing(error) }
  }

  /// Adds the signatures of a copy in which other root keys signed the same sets meanwhile.
  public mutating func unite(with copy: KeySetList) {
    for (index, other) in copy.sets.prefix(sets.count).enumerated()
    where sets[index].keySet.signedBytes == other.keySet.signedBytes {
      sets[index].unite(with: other)
    }
  }

  /// Signatures that the newest set has too few of.
  public struct Shortage: Hashable, Sendable {
    /// The set that is not complete.
    public let epoch: Int64
    /// The set whose root must sign: this one or the one before.
    public let root: Int64
    /// How many of the root's keys have signed.
    public let signatures: Int
    /// How many must.
    public let threshold: Int
  }

  /// What the newest set lacks; nothing where it is complete.
  public var shortages: [Shortage] {
    guard let newest else { return [] }
    return sets.suffix(2).compactMap { demanding in
      let root = demanding.keySet.root
      let count = newest.signers(of: root).count
      guard count < root.threshold else { return nil }
      return Shortage(
        epoch: newest.keySet.epoch, root: demanding.keySet.epoch, signatures: count,
        threshold: root.threshold)
    }
  }
}
