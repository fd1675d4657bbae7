import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The bytes of a sealed record: one line of text, then the content as it is.
///
///     ssl-pinning sealed 1 <store id> <key id> <tag> [<key id> <tag>]
///
/// - A tag is HMAC-SHA-256 over the domain, the store's id, the id of the key in force, the record's name, the
///   version under which it is stored, and the content, each behind its length in 8 bytes. So a record that was
///   edited, moved to another name or store, or stored again under another version does not verify.
/// - The first key is the one in force when the record was written; a second one is there while one key takes
///   the place of another.
/// - Ids and tags are base64, and in no other spelling.
package struct SealedRecord: Sendable, Equatable {
  /// What a tag covers.
  package struct Fields: Sendable, Equatable {
    /// The id of the store, as text.
    var store: String
    /// The key in force.
    var key: SPKIPin
    /// The record's name.
    var name: String
    /// The version under which it is stored, counted from 1.
    var version: Int64
    /// What was written.
    var content: [UInt8]

    package init(
      store: String, key: SPKIPin, name: String, version: Int64, content: [UInt8]
    ) {
      (self.store, self.key, self.name) = (store, key, name)
      (self.version, self.content) = (version, content)
    }

    /// What is hashed.
    var message: [UInt8] {
      var message: [UInt8] = []
      message.reserveCapacity(content.count + 256)
      let number = (0..<8).reversed().map { UInt8(truncatingIfNeeded: version >> ($0 * 8)) }
      for field in [
        [UInt8](SealedRecord.domain.utf8), [UInt8](store.utf8), key.bytes, [UInt8](name.utf8),
        number, content,
      ] {
        let count = UInt64(field.count)
        message += (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        message += field
      }
      return message
    }
  }

  /// A tag, and the key that it was made with.
  package struct Tag: Sendable, Equatable {
    package var key: SPKIPin
    var bytes: [UInt8]
  }

  /// The id of the store.
  package let store: String
  /// The tags, that of the key in force first; never empty.
  package let tags: [Tag]
  /// What was written.
  package let content: [UInt8]

  static let domain = "ssl-pinning store record v1"
  private static let mark = "ssl-pinning sealed "
  private static let format = "1"
  /// No line is longer.
  private static let longestLine = 1024

  /// Seals a record under the first of the keys, with a tag of each.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  package init(_ fields: Fields, keys: [SealKey]) throws(StoreError) {
    var tags: [Tag] = []
    for key in keys { tags.append(Tag(key: key.id, bytes: try key.tag(of: fields))) }
    (store, self.tags, content) = (fields.store, tags, fields.content)
  }

  /// Takes a stored record apart; nothing of it is verified. `nil` if it has no seal that can be read.
  package init?(parsing bytes: [UInt8]) {
    let head = bytes.prefix(Self.longestLine)
    guard let end = head.firstIndex(of: UInt8(ascii: "\n")), Self.isMarked(bytes) else {
      return nil
    }
    let words = String(decoding: head[..<end], as: UTF8.self).dropFirst(Self.mark.count)
      .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 4 || words.count == 6, words[0] == Self.format,
      StoreIdentity.isID(words[1])
    else { return nil }
    var tags: [Tag] = []
    for index in stride(from: 2, to: words.count, by: 2) {
      guard let key = try? SPKIPin(base64: words[index]),
        let tag = StrictBase64.decode(words[index + 1])
      else { return nil }
      tags.append(Tag(key: key, bytes: tag))
    }
    (store, self.tags, content) = (words[1], tags, Array(bytes[(end + 1)...]))
  }

  /// Whether bytes begin as those of a sealed record do.
  static func isMarked(_ bytes: [UInt8]) -> Bool { bytes.starts(with: mark.utf8) }

  /// The key that was in force when it was written.
  var keyInForce: SPKIPin? { tags.first?.key }

  /// The key that finds its tag right; `nil` if none of these does.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  package func verified(
    by keys: [SealKey], name: String, version: Int64
  ) throws(StoreError) -> SealKey? {
    guard let keyInForce else { return nil }
    let fields = Fields(
      store: store, key: keyInForce, name: name, version: version, content: content)
    for tag in tags {
      guard let key = keys.first(where: { $0.id == tag.key }) else { continue }
      if try key.isTag(tag.bytes, of: fields) { return key }
    }
    return nil
  }

  /// As it is stored.
  package var encoded: [UInt8] {
    let words = tags.flatMap { [$0.key.base64, StrictBase64.encode($0.bytes)] }
    let line = Self.mark + ([Self.format, store] + words).joined(separator: " ") + "\n"
    return [UInt8](line.utf8) + content
  }
}

/// Makes and checks the tags of sealed records: 32 bytes that come from a format-1 signing key.
///
/// - It has a domain of its own, so it is no other key's value (compare ``AdminTokenKey``).
/// - The signing key never leaves OpenSSL: the source is its signature over a fixed text. PKCS#1 v1.5 is
///   deterministic (RFC 8017 §8.2.1), so that every server with the key agrees.
/// - Whoever cannot sign documents can make no tag, whatever else he may write to.
package struct SealKey: Sendable, Equatable {
  /// The id of the signing key: the SHA-256 of its SubjectPublicKeyInfo.
  package let id: SPKIPin
  /// The public half of the signing key, as SubjectPublicKeyInfo in DER.
  package let publicKeyDER: [UInt8]
  let bytes: [UInt8]

  /// The key that comes from a signing key. If a command holds that, it is run.
  ///
  /// - Throws: ``SigningKeyError`` if the key does not add up, or its command fails.
  init(_ signingKey: SigningKey) throws(SigningKeyError) {
    let domain = [UInt8]("ssl-pinning store seal v1\0prv.pem\0".utf8)
    self.init(
      publicKeyDER: signingKey.publicKeyDER,
      bytes: Digest.sha256(domain + (try signingKey.sign(domain))))
  }

  /// A key that came from a signing key before (``SealKeyFile``).
  init(publicKeyDER: [UInt8], bytes: [UInt8]) {
    id = SPKIPin(computed: Digest.sha256(publicKeyDER))
    (self.publicKeyDER, self.bytes) = (publicKeyDER, bytes)
  }

  /// The tag of a record.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``, which good input never earns.
  func tag(of record: SealedRecord.Fields) throws(StoreError) -> [UInt8] {
    do throws(CertificateError) {
      return try MessageAuthentication.tag(over: record.message, key: bytes)
    } catch { throw .failed(operation: "sealing \(record.name)", reason: "\(error)") }
  }

  /// Whether a tag is that of the record.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``, which good input never earns.
  func isTag(_ tag: [UInt8], of record: SealedRecord.Fields) throws(StoreError) -> Bool {
    do throws(CertificateError) {
      return try MessageAuthentication.isTag(tag, over: record.message, key: bytes)
    } catch { throw .failed(operation: "checking the seal of \(record.name)", reason: "\(error)") }
  }
}

/// The keys that a server reads and writes sealed records with.
package struct SealKeys: Sendable, Equatable {
  /// The key of `prv.pem`.
  package let own: SealKey
  /// The key of `prv.old.pem`, while `prv.pem` takes its place.
  let former: SealKey?

  /// Keys of signing keys.
  ///
  /// - Parameter directory: where ``SealKeyFile`` may have them, if commands hold those.
  /// - Throws: ``SigningKeyError``.
  package init(
    _ signingKey: SigningKey, former: SigningKey? = nil, keptIn directory: String? = nil
  ) throws(SigningKeyError) {
    guard let directory else {
      own = try SealKey(signingKey)
      self.former = try former.map { (key) throws(SigningKeyError) in try SealKey(key) }
      return
    }
    own = try SealKeyFile.own(signingKey, in: directory)
    let before =
      if let former { try SealKey(former) } else { try SealKeyFile.former(in: directory) }
    self.former = before == own ? nil : before
  }

  /// All of them, that of `prv.pem` first.
  package var all: [SealKey] { [own] + (former.map { [$0] } ?? []) }
}

/// What this server saw of its store's own record last: the file `sealed-store` in `tls.dir`.
///
/// - Somebody who can write to the store, and to nothing else, cannot change it. So he cannot pass off as the store
///   an older record, another store, or one without a seal.
/// - It is written after the record is, and only ever raised: it may lag behind the store, and is never ahead of what
///   this server saw. Each server has its own.
/// - A file that cannot be read, or does not hold a mark, may say more than is known here. So only a person's word is written
///   over it. Meanwhile what was read before counts, and what comes is kept and written once the file can be read,
///   unless it has a person's word by then: that the store was reset once more, or lower numbers of a document.
/// - Where it cannot be written it lasts until the process ends (``problem``).
///
/// Hazard: whoever restores `tls.dir` together with the store takes both back, and nothing can tell.
package final class SealMark: Sendable {
  /// What was seen.
  package struct Seen: Sendable, Equatable {
    /// The store's id. That of a file that cannot be read is empty, and no store's.
    package var id = ""
    /// Which of the store's own records it was.
    package var age = RecordAge()
    /// The names that it had, with those that it lost since.
    package var records: Set<String> = []
    /// The newest statement of each document that was to be copied to `publish.dir`, by file.
    package var copies: [String: RegistryStamp.Version] = [:]
    /// The newest of them that was written, which is another one after a copy that failed.
    package var copied: [String: RegistryStamp.Version] = [:]

    /// The number that a document's last copy has. A mark that an earlier version wrote says only what was to be copied.
    package func lastCopy(of file: String) -> RegistryStamp.Version? {
      copied[file] ?? copies[file]
    }

    /// Has a document's last copy be no newer than this: a person means what is there. `nil` stands for no document.
    package mutating func lower(_ file: String, to number: RegistryStamp.Version?) {
      guard let number else {
        (copies[file], copied[file]) = (nil, nil)
        return
      }
      if let last = copies[file] { copies[file] = min(last, number) }
      if let last = copied[file] { copied[file] = min(last, number) }
    }

    /// This, and what was seen of the same store besides.
    package func raised(to other: Seen) -> Seen {
      guard other.id == id else { return self }
      return Seen(
        id: id, age: max(age, other.age), records: records.union(other.records),
        copies: copies.merging(other.copies, uniquingKeysWith: max),
        copied: copied.merging(other.copied, uniquingKeysWith: max))
    }

    /// Why a record of this id and age is not the store's own; `nil` if it may be.
    package func refusal(ofStore id: String, _ age: RecordAge) -> SealFault.Reason? {
      if self.id.isEmpty { return .markUnreadable }
      if id != self.id { return .otherStore }
      return age < self.age ? .older : nil
    }
  }

  private struct State {
    /// What the file had when it was last read or written.
    var bytes: [UInt8]?
    var seen: Seen?
    /// What was noted since that the file does not have.
    var unwritten: Seen?
    /// Whether there is a file, and what it has cannot be told.
    var isUnread = false
    var problem: String?
  }

  /// Who writes the file.
  package enum Writing: Sendable {
    /// A server: it makes the file if there is none.
    case always
    /// An operator's command beside the server, as another user perhaps: only if there is one.
    case ifThere
    /// Nobody.
    case never
  }

  private let file: AtomicFile?
  private let isOfCopies: Bool
  private let writing: Writing
  private let state = Locked(State())
  /// Its name in `tls.dir`.
  package static let fileName = "sealed-store"
  /// The same of one that has the numbers of copies alone.
  package static let copiesFileName = "last-copies"
  private static let limit = 16 << 20

  /// The mark in this directory.
  ///
  /// - Parameters:
  ///   - directory: `nil` for one that lasts as long as the process.
  ///   - writing: who writes the file.
  ///   - isOfCopies: whether it remembers copies for a store that forgets. Such a store is another one at each start, so
  ///     nothing of it is kept, and the mark of a store that was used before stays.
  package init(directory: String?, writing: Writing = .always, isOfCopies: Bool = false) {
    let name = isOfCopies ? Self.copiesFileName : Self.fileName
    file = directory.map { AtomicFile(path: $0 + "/" + name) }
    (self.isOfCopies, self.writing) = (isOfCopies, writing)
  }

  /// Makes a mark of copies. What fails is ``problem``.
  package func begin() { note(Seen(id: Self.copiesFileName)) }

  /// What was seen; `nil` before any store was. The file counts if it is another than before: somebody else on
  /// this machine may have written or removed it.
  package var seen: Seen? {
    state.withLock { state in
      read(into: &state)
      return state.seen
    }
  }

  /// What the file has; `nil` if there is none.
  package var written: Seen? {
    state.withLock { $0.isUnread ? unknown : $0.bytes.flatMap(decode) }
  }

  /// Whether there is a file, and what it has cannot be told.
  package var isUnread: Bool {
    state.withLock { state in
      read(into: &state)
      return state.isUnread
    }
  }

  /// Why the file could not be read or written; `nil` if it has what was seen.
  package var problem: String? { state.withLock(\.problem) }

  /// Reads the file again, and writes what it lacks. ``problem`` says what came of it.
  package func settle() {
    state.withLock { state in
      read(into: &state)
      if state.problem != nil { write(&state) }
    }
  }

  /// Notes what was seen.
  ///
  /// - Parameters:
  ///   - isOther: whether it takes the place of what was seen before.
  ///   - overUnread: whether also in a file that cannot be read: an operator's word, as `isOther` is by default.
  package func note(_ new: Seen, isOther: Bool = false, overUnread: Bool? = nil) {
    state.withLock { state in
      read(into: &state)
      var new = new
      // Of a store that nobody knew a moment ago.
      if new.id.isEmpty, let id = state.seen?.id { new.id = id }
      let next = isOther ? new : state.seen?.raised(to: new) ?? new
      guard next != state.seen || state.problem != nil else { return }
      state.seen = next
      state.unwritten = isOther ? new : state.unwritten?.raised(to: new) ?? new
      write(&state, overUnread: overUnread ?? isOther)
    }
  }

  /// Has a document's last copy be no newer than this: an operator's word.
  package func lower(_ name: String, to number: RegistryStamp.Version?) {
    state.withLock { state in
      read(into: &state)
      guard var next = state.seen else { return }
      next.lower(name, to: number)
      guard next != state.seen || state.problem != nil else { return }
      state.seen = next
      state.unwritten?.lower(name, to: number)
      write(&state)
    }
  }

  /// Notes that documents are about to be copied to `publish.dir`, or that they were.
  ///
  /// - Newer than record and copy, the number says that a store went back: a person decides then.
  /// - Older than what was to be copied, a copy is no base to begin a lost store from: what was decided since would end.
  /// - Older than what was copied, it is not served while the store is away. One that could not be written keeps nobody from
  ///   the one before.
  package func note(copies numbers: [String: RegistryStamp.Version], areWritten: Bool) {
    guard let id = isOfCopies ? Self.copiesFileName : seen?.id else { return }
    note(Seen(id: id, copies: areWritten ? [:] : numbers, copied: areWritten ? numbers : [:]))
  }

  /// What is known beside a file that was never read: a store's mark refuses every store then.
  private var unknown: Seen { Seen(id: isOfCopies ? Self.copiesFileName : "") }

  private func read(into state: inout State) {
    guard let file else { return }
    let content: [UInt8]?
    do throws(FileError) { content = try file.read(limit: Self.limit) } catch {
      return cannotRead(&state, "\(error)")
    }
    guard state.isUnread || content != state.bytes else { return }
    guard let bytes = content else {
      state = State()
      return
    }
    guard let found = decode(bytes) else {
      return cannotRead(&state, "\(file.path) does not hold what a server writes there")
    }
    var noted = state.unwritten ?? found
    // Nobody knew which store it is.
    if noted.id.isEmpty { noted.id = found.id }
    // A person's word beside this process, on the store or on a document, ends what was noted before.
    if found.age.returns > state.seen?.age.returns ?? 0 {
      noted = found
    } else if let before = state.bytes.flatMap(decode) {
      for (last, now) in [(before.copies, found.copies), (before.copied, found.copied)] {
        for (name, number) in last where now[name].map({ $0 < number }) ?? true {
          noted.lower(name, to: nil)
        }
      }
    }
    let seen = found.raised(to: noted)
    (state.bytes, state.seen, state.unwritten, state.isUnread) = (bytes, seen, noted, false)
    // What it lacks is written with what is noted next.
    if seen == found { (state.unwritten, state.problem) = (nil, nil) }
  }

  private func cannotRead(_ state: inout State, _ reason: String) {
    (state.isUnread, state.problem) = (true, reason)
    state.seen = state.seen ?? unknown
  }

  /// Writes what was seen. What fails is ``problem``.
  private func write(_ state: inout State, overUnread: Bool = false) {
    let isThere = state.bytes != nil || state.isUnread
    guard let file, let seen = state.seen, overUnread || !state.isUnread,
      writing == .always || writing == .ifThere && isThere
    else { return }
    let bytes = Self.encode(seen)
    do throws(FileError) {
      try file.write(bytes)
      state = State(bytes: bytes, seen: seen)
    } catch {
      state.problem = "\(error)"
    }
  }

  private static func encode(_ seen: Seen) -> [UInt8] {
    let json: JSONObject = [
      "id": .string(seen.id), "returns": .integer(seen.age.returns),
      "version": .integer(seen.age.version),
      "records": .array(seen.records.sorted().map { .string($0) }),
      "copies": encode(seen.copies), "copied": encode(seen.copied),
    ]
    return JSONValue.object(json).canonicalBytes
  }

  private static func encode(_ numbers: [String: RegistryStamp.Version]) -> JSONValue {
    .object(
      JSONObject(
        numbers.sorted { $0.key < $1.key }.map {
          ($0.key, .array([.integer($0.value.epoch), .integer($0.value.version)]))
        }))
  }

  private func decode(_ bytes: [UInt8]) -> Seen? {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue,
      // Numbers of copies go by no id, and an earlier version left it empty.
      let id = isOfCopies ? Self.copiesFileName : object["id"]?.stringValue, !id.isEmpty,
      let returns = object["returns"]?.integerValue,
      let version = object["version"]?.integerValue, let records = object["records"]?.arrayValue
    else { return nil }
    guard let copies = Self.numbers(object["copies"]), let copied = Self.numbers(object["copied"])
    else { return nil }
    return Seen(
      id: id, age: RecordAge(returns: returns, version: version),
      records: Set(records.compactMap(\.stringValue)), copies: copies, copied: copied)
  }

  /// The numbers of copies: none in a mark that an earlier version wrote; `nil` if they cannot be read.
  private static func numbers(_ value: JSONValue?) -> [String: RegistryStamp.Version]? {
    var numbers: [String: RegistryStamp.Version] = [:]
    for (name, number) in value?.objectValue?.members ?? [] {
      let parts = number.arrayValue?.compactMap(\.integerValue) ?? []
      guard parts.count == 2 else { return nil }
      numbers[name] = RegistryStamp.Version(epoch: parts[0], version: parts[1])
    }
    return numbers
  }
}
