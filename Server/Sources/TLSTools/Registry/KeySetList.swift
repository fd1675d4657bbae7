import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// The key sets of one registry as their publisher keeps them: the whole chain from set 1.
///
/// - Every set but the newest is complete: signed by enough root keys of the set before and of its own.
///   A set can only follow a complete one.
/// - The keys that apps ship are not in the chain, so it cannot be checked here whether they signed set 1.
/// - A key that is in neither of the two roots cannot sign, except set 1: apps may ship that key.
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

  /// Adds the signatures of a copy in which other root keys have signed the same sets.
  public mutating func unite(with copy: KeySetList) {
    for (index, other) in copy.sets.prefix(sets.count).enumerated()
    where sets[index].keySet.signedBytes == other.keySet.signedBytes {
      sets[index].unite(with: other)
    }
  }

  /// A root that has signed the newest set too few times.
  public struct Shortage: Hashable, Sendable {
    /// The incomplete set.
    public let epoch: Int64
    /// The set whose root must sign: this one or the one before.
    public let root: Int64
    /// How many of the root's keys have signed.
    public let signatures: Int
    /// How many of them must sign.
    public let threshold: Int
  }

  /// What the newest set lacks; empty if it is complete.
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

/// What is wrong with a chain of key sets.
public enum KeySetListError: Error, Equatable, Sendable {
  /// Not an array of key sets, or an empty one.
  case notKeySets
  /// The set of this epoch cannot be read.
  case invalid(epoch: Int64, DocumentFault)
  /// The newest set lacks signatures, so no other can follow it.
  case incomplete(KeySetList.Shortage)
  /// The key must not sign the set of this epoch.
  case notARootKey(SPKIPin, epoch: Int64)
  /// The key cannot sign.
  case signing(SigningKeyError)
}

extension KeySetListError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notKeySets: "no key sets; hint: ssl-pinning keys sign-set makes them"
    case .invalid(let epoch, let fault): "key set \(epoch) is invalid: \(fault)"
    case .incomplete(let shortage):
      "\(shortage); hint: let its root keys sign first, ssl-pinning keys sign-set"
    case .notARootKey(let id, let epoch):
      "key \(id) is no root key of key set \(epoch)\(epoch > 1 ? " or \(epoch - 1)" : "")"
    case .signing(let error): "\(error)"
    }
  }
}

extension KeySetList.Shortage: CustomStringConvertible {
  public var description: String {
    "key set \(epoch) has \(signatures) of \(threshold) signatures of the root of key set \(root)"
  }
}

extension KeySetListError: ExplainedError {}

/// A key set with the signatures that it has so far. Root keys are kept in different places, so they
/// sign one after another.
public struct SignedKeySet: Sendable {
  /// The set.
  public let keySet: KeySet
  /// At most one by each key.
  public private(set) var signatures: [DocumentSignature] = []

  /// A set that nobody has signed.
  public init(_ keySet: KeySet) { self.keySet = keySet }

  /// Reads an entry of `keySets` without checking whether its signatures suffice.
  ///
  /// - Throws: ``DocumentFault``.
  public init(
    _ entry: JSONValue, registry: String, epoch: Int64
  ) throws(DocumentFault) {
    guard let json = entry.objectValue?["keySet"]?.objectValue else { throw .member("keySet") }
    keySet = try KeySet(json, registry: registry, epoch: epoch, crypto: PlatformRegistryCrypto())
    signatures = try DocumentSignature.list(entry.objectValue?["signatures"], "signatures")
  }

  /// The entry of `keySets`.
  public var json: JSONValue { keySet.entry(signedBy: signatures) }

  /// Signs the set; a signature that the key made before is replaced.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if the key is inconsistent.
  public mutating func sign(with key: TrustSigningKey) throws(SigningKeyError) {
    let signature = try key.signature(.keySet, over: keySet.json)
    signatures.removeAll { $0.keyID.utf8.elementsEqual(signature.keyID.utf8) }
    signatures.append(signature)
  }

  /// Adds the signatures of other keys from a copy of the same set.
  mutating func unite(with copy: SignedKeySet) {
    signatures += copy.signatures.filter { other in
      !signatures.contains { $0.keyID.utf8.elementsEqual(other.keyID.utf8) }
    }
  }

  /// The keys of this role whose signatures are valid.
  public func signers(of role: KeyRole) -> [RoleKey] {
    let message = keySet.signedBytes
    return role.keys.filter { key in
      (try? KeyRole(keys: [key], threshold: 1))?.isMet(by: signatures, over: message) ?? false
    }
  }
}

extension KeySet {
  /// The entry of `keySets`, signed by these keys. A valid entry needs enough root keys of the set before
  /// and of this set. That is not checked here: tests make broken entries, and clients refuse them.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if a key is inconsistent.
  public func entry(signedBy keys: [TrustSigningKey]) throws(SigningKeyError) -> JSONValue {
    var signatures: [DocumentSignature] = []
    for key in keys { signatures.append(try key.signature(.keySet, over: json)) }
    return entry(signedBy: signatures)
  }
}
