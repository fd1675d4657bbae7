import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Holds the online keys, and finds the key sets that a document carries.
///
/// - Online keys are those of `publish.online_keys`, those in `tls.dir/online`, and the key that apps ship.
/// - Without key sets the document is of epoch 0, signed by the key that apps ship.
/// - Key sets are a file for each document, named like it, as `ssl-pinning keys` writes them. The newest
///   complete set counts; one that still lacks signatures waits. The file is read each time; so are the keys in
///   `tls.dir/online` if the set asks for one that was not there at the start or the last SIGHUP. Or nothing could be
///   decided between `keys rotate` and the signal, or at all if the configuration is refused by then.
/// - What was published is never left: a file that is shorter than the published chain, or missing, is
///   made up for by the chain in the document; one that differs from it is refused.
/// - A set that lists an online key held here with another algorithm waits, too: clients would refuse all
///   that is signed under it.
struct StatementSigner: Sendable {
  let keys: [TrustSigningKey]
  let keySetDirectory: String
  private let onlineDirectory: String
  let publishing: PublishingConfiguration

  /// Reads the online keys.
  ///
  /// - Parameter key: the key that apps ship, if it is not in `prv.pem`.
  /// - Throws: ``DocumentSignerError/onlineKey(path:_:)``.
  init(
    directory: String, publishing: PublishingConfiguration, key: TrustSigningKey? = nil
  ) throws(DocumentSignerError) {
    let base = directory.hasSuffix("/") ? directory : directory + "/"
    var keys = [key].compactMap(\.self)
    let rotated: [String]
    onlineDirectory = base + "online"
    do throws(SigningKeyError) { rotated = try Self.rotated(in: onlineDirectory) } catch {
      throw .onlineKey(path: onlineDirectory, error)
    }
    for path in (key == nil ? [base + "prv.pem"] : []) + rotated {
      do throws(SigningKeyError) {
        keys.append(try TrustSigningKey(file: URL(filePath: path)))
      } catch { throw .onlineKey(path: path, error) }
    }
    // These alone may name commands: the configuration names them, and nothing that merely lies in a directory.
    for path in publishing.onlineKeys {
      do throws(SigningKeyError) { keys.append(try TrustSigningKey(named: path)) } catch {
        throw .onlineKey(path: path, error)
      }
    }
    self.keys = keys
    self.publishing = publishing
    keySetDirectory = publishing.keySets ?? base + "keysets"
  }

  /// The keys that `ssl-pinning keys rotate` made.
  static func rotated(in directory: String) throws(SigningKeyError) -> [String] {
    guard access(directory, R_OK | X_OK) == 0 else {
      guard errno != ENOENT else { return [] }
      throw .unreadable(path: directory, reason: String(cString: strerror(errno)).lowercased())
    }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.filter { $0.hasSuffix(".pem") }.sorted().map { directory + "/" + $0 }
  }

  /// The complete key sets that the next document carries.
  ///
  /// - Throws: ``SigningProblem``.
  func keySets(
    of file: String, published: [SignedKeySet]
  ) throws(SigningProblem) -> [SignedKeySet] {
    try sets(completeKeySets(of: file) ?? [], after: published, of: file)
  }

  /// The same with the complete sets that are here.
  private func sets(
    _ own: [SignedKeySet], after published: [SignedKeySet], of file: String
  ) throws(SigningProblem) -> [SignedKeySet] {
    var complete = own
    for (own, old) in zip(complete, published)
    where own.keySet.signedBytes != old.keySet.signedBytes {
      throw .keySetsDiffer(epoch: own.keySet.epoch, path: path(of: file))
    }
    while complete.count > published.count, let newest = complete.last,
      unusableOnlineKey(of: newest.keySet) != nil
    {
      complete.removeLast()
    }
    return complete.count >= published.count ? complete : published
  }

  /// Why a set in the file for a document is not used although it is complete, or that the one in use ends soon.
  ///
  /// - Throws: ``SigningProblem/keySets(path:reason:)``.
  func problem(
    of file: String, behind used: [SignedKeySet], at now: Int64
  ) throws(SigningProblem) -> SigningProblem? {
    if let waiting = try completeKeySets(of: file)?.dropFirst(used.count).last,
      let problem = unusableOnlineKey(of: waiting.keySet)
    {
      return problem
    }
    guard let newest = used.last?.keySet, let end = newest.expires,
      end < now + SigningProblem.warningTime
    else { return nil }
    return .keySetEnds(epoch: newest.epoch, at: end)
  }

  private func path(of file: String) -> String { keySetDirectory + "/" + file }

  private func completeKeySets(of file: String) throws(SigningProblem) -> [SignedKeySet]? {
    guard let list = try storedKeySets(of: file) else { return nil }
    return list.shortages.isEmpty ? list.sets : list.sets.dropLast()
  }

  /// A key that is held here and stands in a set with an algorithm that verifies nothing, if too few others
  /// are held. An id covers the key alone, so the set may have been changed before the root keys signed it.
  private func unusableOnlineKey(of set: KeySet) -> SigningProblem? {
    let own = Set(keys.map(\.roleKey.id))
    let held = set.online.keys.filter { own.contains($0.id) }
    guard let key = held.first(where: { !Self.isKnown($0) }),
      held.count(where: Self.isKnown) < set.online.threshold
    else { return nil }
    return .onlineKeyUnusable(epoch: set.epoch, key.id, algorithm: key.algorithm)
  }

  private static func isKnown(_ key: RoleKey) -> Bool {
    SignatureAlgorithm(rawValue: key.algorithm) != nil
  }

  /// The key sets in the file for a document, the newest perhaps not signed by enough; `nil` where there
  /// is no file.
  ///
  /// - Throws: ``SigningProblem/keySets(path:reason:)``.
  func storedKeySets(of file: String) throws(SigningProblem) -> KeySetList? {
    let path = path(of: file)
    // What may not be probed is not absent: the old key would stay in force, and nobody would know.
    guard access(path, F_OK) == 0 || errno != ENOENT else { return nil }
    let bytes: [UInt8]
    do throws(SmallFile.Failure) { bytes = try SmallFile.read(path, limit: 4 << 20) } catch {
      throw .keySets(path: path, reason: "\(error)")
    }
    let list: KeySetList
    do { list = try KeySetList(try JSONValue(parsing: bytes)) } catch {
      throw .keySets(path: path, reason: "\(error)")
    }
    guard list.registry == file else {
      throw .keySets(path: path, reason: "they are for \(list.registry)")
    }
    return list
  }

  /// Whether clients that know the key sets here believe a statement under these ones, which are the same or go on from
  /// them. Where none is here, `prv.pem` must have signed the first one, or the statement.
  ///
  /// While the sets here cannot be read, nothing is signed: then those of the document count.
  ///
  /// - Parameters:
  ///   - keySets: `keySets` as the document has them.
  ///   - signatures: those of its statement.
  ///   - message: what they are over.
  ///   - canBeBehind: whether it may be from before the newest sets here.
  func isBelieved(
    _ file: String, under keySets: JSONValue?, _ signatures: [DocumentSignature],
    over message: [UInt8], canBeBehind: Bool
  ) -> Bool {
    let own = (try? completeKeySets(of: file)) ?? []
    let read: KeySetList? =
      if let keySets { try? KeySetList(keySets) } else { KeySetList(registry: file) }
    guard let list = read, list.registry == file, list.shortages.isEmpty,
      let next = try? sets(own, after: list.sets, of: file),
      canBeBehind || next.count == list.sets.count,
      let shipped = try? KeyRole(keys: keys.prefix(1).map(\.roleKey), threshold: 1),
      !own.isEmpty || list.sets.first.map({ !$0.signers(of: shipped).isEmpty }) ?? true
    else { return false }
    return (list.newest?.keySet.online ?? shipped).isMet(by: signatures, over: message)
  }

  /// The keys here that sign statements under the newest set.
  ///
  /// Those that it asks for besides sign, too, where clients count them that know as much as this program.
  ///
  /// - Throws: ``SigningProblem/keySetExpired(epoch:since:)``,
  ///   ``SigningProblem/onlineKeysMissing(epoch:held:threshold:)`` and
  ///   ``SigningProblem/onlineKeyUnusable(epoch:_:algorithm:)``.
  func onlineKeys(
    for keySets: [SignedKeySet], at now: Int64
  ) throws(SigningProblem) -> [TrustSigningKey] {
    guard let newest = keySets.last?.keySet else { return Array(keys.prefix(1)) }
    if let end = newest.expires, newest.isExpired(at: now) {
      throw .keySetExpired(epoch: newest.epoch, since: end)
    }
    if let problem = unusableOnlineKey(of: newest) { throw problem }
    do throws(SigningProblem) { return try Self.signers(of: newest, among: keys) } catch {
      guard case .onlineKeysMissing = error else { throw error }
      let paths = (try? Self.rotated(in: onlineDirectory)) ?? []
      let written = paths.compactMap { try? TrustSigningKey(file: URL(filePath: $0)) }
      return try Self.signers(of: newest, among: keys + written)
    }
  }

  private static func signers(
    of newest: KeySet, among keys: [TrustSigningKey]
  ) throws(SigningProblem) -> [TrustSigningKey] {
    let quorums = newest.online.quorums.map {
      (ids: Set($0.keys.filter(isKnown).map(\.id)), $0.threshold)
    }
    var held: [TrustSigningKey] = []
    for key in keys
    where quorums.contains(where: { $0.ids.contains(key.roleKey.id) })
      && !held.contains(where: { $0.roleKey.id == key.roleKey.id })
    {
      held.append(key)
    }
    for (ids, threshold) in quorums {
      let count = held.count { ids.contains($0.roleKey.id) }
      guard count >= threshold else {
        throw .onlineKeysMissing(epoch: newest.epoch, held: count, threshold: threshold)
      }
    }
    return held
  }

  /// The key sets in a document that was published.
  static func published(in document: [UInt8]) -> [SignedKeySet] { LastDocument(document).keySets }
}

/// The document that was published last, as the next one goes on from it. Parsed once.
struct LastDocument {
  private let members: JSONObject?
  /// Those that it carries.
  let keySets: [SignedKeySet]

  init(_ document: [UInt8]) {
    self.init(
      members: document.isEmpty ? nil : (try? JSONValue(parsing: document))?.objectValue)
  }

  init(members: JSONObject?) {
    self.members = members
    keySets = members?["keySets"].flatMap { try? KeySetList($0) }?.sets ?? []
  }

  /// Its payload.
  var payload: JSONObject? { members?["payload"]?.objectValue }

  /// Its statement: the next one says that it follows it.
  func statement(of file: String) -> StatementID? {
    guard let json = members?["statement"]?.objectValue,
      let statement = try? Statement(json, registry: file)
    else { return nil }
    return StatementID(of: statement, crypto: PlatformRegistryCrypto())
  }
}
