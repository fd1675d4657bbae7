import CanonicalJSON
import Foundation
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The documents that were published last, as they can be had without believing the store: the copies in
/// `publish.dir`, and what unbelieved records have in them. Each was signed by a key of this registry.
///
/// - A copy is gone on from only if clients would take it that know the key sets here: a withdrawn online key, or `prv.pem` beside a
///   key set that does not list it, would have this server sign anew what a thief says. One from before the newest set counts if it
///   has the number of the last one that was written, since nothing was published under the set yet, or if nobody noted that number.
/// - A key set that is missing here, as after `tls.dir` came from an old archive, makes no copy a stranger's: it counts if
///   clients that know the sets here would follow it. Otherwise its denials would end, and its epoch be gone back behind.
struct LastCopies: Sendable {
  /// The store; `nil` if it is not to be asked.
  let store: SealedStore?
  /// `publish.dir`.
  let directory: String?
  /// Remembers the numbers of copies for a store that forgets; for others the mark of the store does.
  var mark: SealMark?
  /// Signs by the keys in force.
  let signer: @Sendable () -> DocumentSigner

  /// What stands in the place of a copy in `publish.dir`.
  struct Found: Sendable {
    /// The copy, if it is one of this server's.
    var copy: PublishedDocument?
    /// Whether anything is there.
    var isThere = false
    /// Why nobody knows that.
    var unknown: Unknown?
    /// Whether the directory said so.
    var isAnswered: Bool { unknown == nil }

    /// Why nobody knows what is there.
    enum Unknown: Error {
      /// The directory does not answer, or fails, as that of a file server that is away: it may have anything.
      case silent
      /// The server may not read it, or it is a link that leads nowhere. That may always have been so: only if a copy was
      /// written there is it one that is out of reach.
      case unreadable

      /// - Parameter code: the system's reason.
      init(_ code: Int32) {
        self = [EACCES, EPERM, ELOOP, ENAMETOOLONG].contains(code) ? .unreadable : .silent
      }
    }
  }

  /// The newest of the copy in `publish.dir` and of a document that is served, if this server's keys signed all
  /// of it.
  func newest(_ file: String, beside served: PublishedDocument?) async -> PublishedDocument? {
    newest(await find(file), file, beside: served)
  }

  /// The same, with a copy that was looked for already.
  func newest(
    _ found: Found, _ file: String, beside served: PublishedDocument?
  ) -> PublishedDocument? {
    let signer = signer()
    let own = served.flatMap { Self.document($0.bytes, file, signedBy: signer.publicKeyPEM) }
    return [found.copy, own].compactMap(\.self).filter { isVouched($0, by: signer, seen) }
      .max { $1.isNewer(than: $0) }
  }

  /// Whether the copies in `publish.dir` can stand in for a lost store. Of each document that was in it there must be one
  /// that this server's keys signed as a whole, that says what is denied, as a document of format 1 does not, and that
  /// is the last that was to be copied.
  ///
  /// - Parameters:
  ///   - seen: what was seen of the store.
  ///   - files: the documents that are configured.
  /// - Throws: ``silence``.
  func standIn(for seen: SealMark.Seen, _ files: [String]) async throws(StoreError) -> Bool {
    let signer = signer()
    let known = files.filter(seen.records.contains)
    // All of them may have other names by now.
    for file in known.isEmpty ? Array(seen.records) : known {
      let found = await find(file)
      guard found.isAnswered else { throw Self.silence }
      guard let copy = found.copy, isVouched(copy, by: signer, seen), let own = copy.number,
        seen.copies[file].map({ own >= $0 }) ?? true
      else { return false }
    }
    return true
  }

  /// `publish.dir` does not answer, and what is in it must be known.
  static let silence = StoreError.unreachable(
    place: "publish.dir",
    reason: "it does not answer, or cannot be read, as on a file server that is away")

  /// The copy in `publish.dir`, if this server's keys signed all of it and no newer one was written: what is served while
  /// the store is awaited. One that was to be copied, and could not be, is not there to be served.
  func served(_ file: String) async -> PublishedDocument? {
    guard let copy = await newest(file, beside: nil) else { return nil }
    guard let last = seen?.lastCopy(of: file) else { return copy }
    return copy.number.map { $0 >= last } ?? false ? copy : nil
  }

  /// The newest document that can still be served while the store is not believed.
  ///
  /// - Parameters:
  ///   - isOtherKey: whether `prv.pem` is not the key in force: then what that one signed is served.
  ///   - isOlderMeant: whether a person wants the newest there is, also if a newer one was copied: a server serves none
  ///     then, and copies none over what stands there.
  func servable(
    _ file: String, isOtherKey: Bool, isOlderMeant: Bool = false
  ) async -> PublishedDocument? {
    let signer = signer()
    let there = await find(file)
    var found = [there.copy, await stored(file, signedBy: signer.publicKeyPEM)].compactMap(\.self)
    if !isOlderMeant, let last = seen?.lastCopy(of: file) {
      found.removeAll { isOlder($0.number, than: last) }
    }
    if isOtherKey, let claimed = await store?.claimedPublicKey() {
      // Nobody here can tell whether it is right: clients can. The store's own comes first.
      if let other = await stored(file, signedBy: Self.pem(claimed)) { return other }
    }
    let vouched = found.filter { isVouched($0, by: signer, seen) }
    if !vouched.isEmpty { found = vouched }
    return found.max { $1.isNewer(than: $0) }
  }

  /// What the last document tells that is served while the store is not believed. What it lists counts if `prv.pem` signed it. What it
  /// denies and took out counts only if keys of this registry signed its statement, too: otherwise whoever can write to the store could
  /// deny keys.
  ///
  /// - Parameter configured: endpoints that may be among those that were taken out.
  func told(_ file: String, keepingOut configured: [WatchedEndpoint] = []) async -> DocumentState? {
    guard let document = await servable(file, isOtherKey: false) else { return nil }
    var copy = document.signedCopy
    if !isVouched(document), var members = copy.members {
      members["statement"] = nil
      copy = SignedCopy(bytes: copy.bytes, signed: Self.signed(members), members: members)
    }
    return DocumentState(of: copy, keepingOut: configured)
  }

  /// The copy in `publish.dir`, if this server's `prv.pem` signed its payload, whoever signed the rest.
  ///
  /// - A store that forgets knows no signing key, so nobody can adopt another one. There the key of `prv.old.pem` counts, too, if
  ///   keys of this registry signed the rest.
  func find(_ file: String) async -> Found {
    guard let directory else { return Found() }
    let path = directory + "/" + file
    let answer = await CopyReader.at(directory).read { Self.read(path) }
    guard let read = answer else { return Found(unknown: .silent) }
    guard let bytes = read.bytes else { return read.found }
    let signer = signer()
    var copy = Self.document(bytes, file, signedBy: signer.publicKeyPEM)
    if copy == nil, mark != nil, let former = signer.formerKey {
      copy = Self.document(bytes, file, signedBy: former.publicKeyPEM)
        .flatMap { isVouched($0, by: signer, seen) ? $0 : nil }
    }
    return Found(copy: copy, isThere: true)
  }

  /// What stands at a path: only "not there" says that nothing is.
  private static func read(_ path: String) -> (bytes: [UInt8]?, found: Found) {
    if let bytes = CopyFile.read(path) { return (bytes, Found(isThere: true)) }
    var status = stat()
    guard stat(path, &status) == 0 else {
      let code = errno
      guard code == ENOENT || code == ENOTDIR else {
        return (nil, Found(unknown: Found.Unknown(code)))
      }
      return (nil, Found(isThere: code == ENOTDIR))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { return (nil, Found(isThere: true)) }
    // A file that may be read, and could not be, is on a disk that fails.
    return (nil, Found(unknown: Found.Unknown(access(path, R_OK) == 0 ? EIO : errno)))
  }

  /// Why a document cannot begin from what the store has and this copy: nobody knows then what was decided last.
  ///
  /// - The number is noted after the record is written, and before the copy is. So a crash in between leaves a record that is
  ///   as new, and the copy may be older, gone or another key's. If neither is as new, what was decided since is in neither.
  ///
  /// - Parameter seen: what was seen before record and copy were read. A process beside this one may store and note a newer
  ///   document in between.
  func fault(
    of found: Found, _ file: String, beside record: StoredRecord?, after seen: SealMark.Seen?
  ) -> SealFault? {
    guard let record else { return faultWithoutRecord(found, file, after: seen) }
    guard let last = seen?.copies[file],
      // What cannot be read is an error of its own.
      let state = try? DocumentState(decoding: record.bytes, file: file),
      isOlder(state.number, than: last)
    else { return nil }
    guard found.isAnswered else { return .copySilent(of: file) }
    if isLast(found, last) { return nil }
    return .broken(record: file, directory == nil ? .olderThanFormerCopy : .older)
  }

  private func faultWithoutRecord(
    _ found: Found, _ file: String, after seen: SealMark.Seen?
  ) -> SealFault? {
    let last = lastCopies(seen)[file]
    if found.unknown == .silent || found.unknown == .unreadable && last != nil {
      return .copySilent(of: file)
    }
    guard let last else { return nil }
    if mark == nil { return isLast(found, last) ? nil : .vanished(record: file) }
    if let number = found.copy?.number, number < last { return .copyBehind(of: file) }
    return found.isThere && found.copy == nil ? .copyForeign(of: file) : nil
  }

  /// The numbers of the copies that there are to be. What a store that forgets was to copy, and could not, is nowhere: it goes on
  /// from the last one that was written.
  private func lastCopies(_ seen: SealMark.Seen?) -> [String: RegistryStamp.Version] {
    (mark == nil ? seen?.copies : seen?.copied) ?? [:]
  }

  /// Whether a copy is as new as the last one that was to be made, and can be gone on from.
  private func isLast(_ found: Found, _ last: RegistryStamp.Version) -> Bool {
    guard let copy = found.copy, let number = copy.number else { return false }
    return number >= last && isVouched(copy)
  }

  /// Whether a document is older than the last copy. One without a number is not if this server numbers none.
  private func isOlder(_ number: RegistryStamp.Version?, than last: RegistryStamp.Version) -> Bool {
    guard let number else { return signer().statements != nil }
    return number < last
  }

  /// Whether a store that forgets has nothing to go on from, though a copy was written.
  func isGone(_ found: Found, _ file: String) -> Bool {
    !found.isThere && mark?.seen?.copied[file] != nil
  }

  /// Whether keys of this registry signed all of a copy.
  func isVouched(_ copy: PublishedDocument) -> Bool { isVouched(copy, by: signer(), seen) }

  /// The number of a document, if keys of this registry signed all of it.
  func number(of bytes: [UInt8], _ file: String) -> RegistryStamp.Version? {
    let copy = Self.document(bytes, file, signedBy: signer().publicKeyPEM)
    return copy.flatMap { isVouched($0) ? $0.number : nil }
  }

  /// Notes that documents are about to be copied to `publish.dir`, or that they were.
  ///
  /// - While the store is not believed, one may be served whose statement somebody else wrote. Its number counts for nothing: by a
  ///   high one, every record would be older from then on.
  func note(copies documents: [PublishedDocument], areWritten: Bool) {
    let signer = signer()
    let numbers = documents.filter { Self.isVouched($0, by: signer, canBeBehind: true) }
      .compactMap { document in document.number.map { (document.file, $0) } }
    guard !numbers.isEmpty else { return }
    (mark ?? store?.mark)?.note(
      copies: Dictionary(numbers, uniquingKeysWith: max), areWritten: areWritten)
  }

  /// What was seen of the store, and of copies.
  var seen: SealMark.Seen? { (mark ?? store?.mark)?.seen }

  private func isVouched(
    _ copy: PublishedDocument, by signer: DocumentSigner, _ seen: @autoclosure () -> SealMark.Seen?
  ) -> Bool {
    if Self.isVouched(copy, by: signer) { return true }
    // Where nobody knows which copy was the last, as in a `tls.dir` that cannot be written, one from before the newest set counts: else
    // what it denies would end with each key set that is made while the server is down.
    if let last = seen()?.copied[copy.file], last != copy.number { return false }
    return Self.isVouched(copy, by: signer, canBeBehind: true)
  }

  /// The copies in `publish.dir` of other documents, if this server's keys signed all of them; `nil` if it does not answer, or if one
  /// cannot be read that may say more than its record. Any other file that cannot be read is none: somebody else's, as a rule.
  func all(
    but files: Set<String>, beside records: [String: DocumentState]
  ) async -> [PublishedDocument]? {
    guard let directory else { return [] }
    let answer = await CopyReader.at(directory).read { Self.names(in: directory) }
    let needed = Set(
      lastCopies(seen).filter { name, number in
        !files.contains(name) && records[name].map { isOlder($0.number, than: number) } ?? true
      }.keys)
    switch answer {
    case .success(let names)?:
      var all: [PublishedDocument] = []
      // What no document can be called is none, and may be large.
      for name in names.sorted()
      where !files.contains(name) && DocumentConfiguration.isSafe(file: name)
        && !DocumentConfiguration.isTaken(file: name)
      {
        let found = await find(name)
        if found.unknown == .silent || found.unknown == .unreadable && needed.contains(name) {
          return nil
        }
        if let copy = newest(found, name, beside: nil) { all.append(copy) }
      }
      return all
    case .failure(.unreadable)?: return needed.isEmpty ? [] : nil
    case .failure(.silent)?, nil: return nil
    }
  }

  /// The names in a directory: none if it is not there, or is none.
  private static func names(in directory: String) -> Result<[String], Found.Unknown> {
    if let names = try? FileManager.default.contentsOfDirectory(atPath: directory) {
      return .success(names)
    }
    guard let stream = opendir(directory) else {
      let code = errno
      return code == ENOENT || code == ENOTDIR ? .success([]) : .failure(Found.Unknown(code))
    }
    closedir(stream)
    return .failure(.silent)
  }

  private func stored(_ file: String, signedBy publicKeyPEM: String) async -> PublishedDocument? {
    guard let content = await store?.unverified(file),
      let document = UnverifiedRecord.string("document", of: content).map({ [UInt8]($0.utf8) }),
      document.count <= CopyFile.mostBytes, CopyFile.canBeDocument(document)
    else { return nil }
    return Self.document(document, file, signedBy: publicKeyPEM)
  }

  /// A document, if this key signed its payload.
  ///
  /// - Parameter signed: when it was signed, in Unix seconds; by default, what it says itself.
  static func document(
    _ bytes: [UInt8], _ file: String, signedBy publicKeyPEM: String, at signed: Int64? = nil
  ) -> PublishedDocument? {
    Self.signed(bytes, by: publicKeyPEM, at: signed).map { PublishedDocument(file: file, $0) }
  }

  /// A document as it can be gone on from, with its members, if this key signed its payload.
  static func signed(
    _ bytes: [UInt8], by publicKeyPEM: String, at signed: Int64? = nil
  ) -> SignedCopy? {
    guard !bytes.isEmpty,
      let envelope = try? RegistryEnvelope(
        parsing: bytes, limits: RegistryLimits(maximumBytes: 64 << 20)),
      let verification = try? VerificationKey(bytes: [UInt8](publicKeyPEM.utf8)),
      (try? envelope.verifiedPayload(by: verification)) != nil
    else { return nil }
    return SignedCopy(
      bytes: bytes, signed: signed ?? Self.signed(envelope.document), members: envelope.document)
  }

  /// Whether the online keys of the newest key set here, or of one that follows the sets here, signed the statement of a document whose
  /// payload is good, and that statement speaks of this payload. A document of format 1 has none.
  ///
  /// - Parameter canBeBehind: whether it may be from before the newest set.
  static func isVouched(
    _ document: PublishedDocument, by signer: DocumentSigner, canBeBehind: Bool = false
  ) -> Bool {
    guard let json = (try? JSONValue(parsing: document.bytes))?.objectValue else { return false }
    guard let statement = json["statement"] else { return signer.statements == nil }
    guard let object = statement.objectValue,
      let read = try? Statement(object, registry: document.file),
      document.number?.epoch == document.keySetEpoch,
      read.payloadDigest.elementsEqual(
        Digest.sha256((json["payload"] ?? .null).canonicalBytes)),
      let signatures = try? DocumentSignature.list(
        json["statementSignatures"], "statementSignatures"),
      let statements = signer.statements
    else { return false }
    return statements.isBelieved(
      document.file, under: json["keySets"], signatures,
      over: DocumentSignature.Domain.statement.bytes(over: object), canBeBehind: canBeBehind)
  }

  /// When a document was signed, in Unix seconds, by what it says itself.
  private static func signed(_ document: JSONObject) -> Int64 {
    if let issued = document["statement"]?.objectValue?["issued"]?.integerValue { return issued }
    let keys = document["payload"]?.objectValue?["keys"]?.arrayValue ?? []
    let expires = keys.first?.objectValue?["expire"]?.integerValue ?? 0
    return max(0, expires - DocumentSigner.horizon)
  }

  private static func pem(_ spki: [UInt8]) -> String {
    "-----BEGIN PUBLIC KEY-----\n" + StrictBase64.encode(spki) + "\n-----END PUBLIC KEY-----\n"
  }
}

/// Reads what stands in the place of a copy in `publish.dir`. What a record that nobody verified has for a document is bounded alike.
///
/// Whoever may write there may have put anything there, and no signature is checked before it is parsed. So it is bounded by what
/// a document can be: a file must take no more memory than the server has, at a start least of all, which would not succeed until
/// somebody removes the file.
enum CopyFile {
  /// The most bytes that are read: four times what clients take by default.
  static let mostBytes = 4 * SigningProblem.mostBytes

  /// So many values are parsed in any case.
  private static let freeValues = 1 << 16

  /// What stands there: empty if that can be no document, `nil` if there is no file that can be read.
  static func read(_ path: String) -> [UInt8]? {
    do throws(SmallFile.Failure) {
      let bytes = try SmallFile.read(path, limit: mostBytes)
      return canBeDocument(bytes) ? bytes : []
    } catch {
      guard case .tooLarge = error else { return nil }
      return []
    }
  }

  /// Whether a file is not made of many tiny values, which take many times its size once they are parsed. A document's have
  /// more than nine bytes on average: pins and signatures are long.
  static func canBeDocument(_ bytes: [UInt8]) -> Bool {
    // A value or a name comes after each of these, and nowhere else.
    let values = bytes.count { byte in
      switch byte {
      case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "{"): true
      default: false
      }
    }
    return values <= max(freeValues, bytes.count / 8)
  }
}
