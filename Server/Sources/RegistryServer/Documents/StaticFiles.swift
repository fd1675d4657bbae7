import CanonicalJSON
import Foundation
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// The published documents as files, for a web server or a CDN: `DIR/{file}`, and `DIR/{file}.gz` beside
/// it, the same bytes compressed. Its parts stand in `DIR/{file}.parts`, as `statement` and
/// `payload/{digest}`: `{file}` is a file, and no folder can have its name.
///
/// - Whole or not at all: written beside, flushed, renamed into place. A web server that opens a file
///   while it is replaced sends the old one to its end.
/// - In the order of publishing, off the threads that publish; ``finish()`` waits for the last, but not for ever: a directory
///   may not answer, as that of a file server that is away. That is told as what could not be written is.
/// - A payload stands before the statement that names it, and goes when two newer ones are there: caches may
///   have the statement before.
/// - Readable by everybody: documents are public, and a web server is somebody else. The directory may be a link; none
///   in it is followed: ``PublicFolder``.
/// - Every server that has the directory writes what it publishes. Replicas need one each, or a store of
///   files that all see; the newest document wins either way.
/// - What could not be written is written again every few seconds, until it is there or something newer is that keys of this
///   registry signed. The newest of each file alone: a copy never goes back.
/// - What is gone is written again: ``restore(_:)``.
/// - What somebody else put there, by `sign --out`, is not read while the server runs. It is replaced, and that is told:
///   nobody else would miss the denial in it.
final class StaticFiles: Sendable {
  /// What became of a document.
  enum Outcome: Equatable, Sendable {
    case written
    /// The system's reason, and whether apps that read the copy lack something that was decided.
    case failed(String, isLacking: Bool)
    /// It is written, over a document that this server never published; the denials that go with that.
    case replaced(denials: [String])

    /// Tells it where an operator looks.
    func tell(of file: String, _ health: ServiceHealth, _ log: ServerLog, at now: Int64) {
      if case .failed(let reason, let isLacking) = self {
        health.unwritten(copy: file, reason, isLacking: isLacking, at: now)
        return log.event(.error, "file_not_written", ["file": file, "reason": reason])
      }
      if health.written(copy: file) { log.event(.info, "file_written", ["file": file]) }
      guard case .replaced(let denials) = self else { return }
      log.event(
        denials.isEmpty ? .warn : .error, "foreign_file_replaced",
        [
          "file": file, "denials": denials.joined(separator: " "),
          "message":
            "somebody else wrote \(file) in publish.dir, and what that said is published no more; hint: while"
            + " a server publishes there, change the list by ssl-pinning admin or the console",
        ])
    }
  }

  /// The number of a document, if keys of this registry signed all of it.
  typealias Numbering = @Sendable (_ bytes: [UInt8], _ file: String) -> RegistryStamp.Version?

  private let directory: String
  private let copying: @Sendable (_ documents: [PublishedDocument], _ areWritten: Bool) -> Void
  private let numbering: Numbering
  private let later: CopyReader.Later
  private let report: @Sendable (_ file: String, _ outcome: Outcome) -> Void
  private let queue: DispatchQueue
  /// One thing after the other is told, and nothing after the end. Apart from the writing, which may not end.
  private let telling = DispatchQueue(label: "what became of published files")
  /// Where it is noted what is to be written. Apart from the writing, too: what was acknowledged is noted in any case.
  private let noting = DispatchQueue(label: "which files are to be published")
  private let state = Locked(State())

  /// Seconds until what could not be written is written again.
  static let pause = 2
  /// Seconds that a change, or the end of the server, waits for copies at most.
  static let patience = 3
  /// Seconds in which no copy was finished, after which those that wait are told.
  static let longest = 10

  private static let queues = Locked<[String: DispatchQueue]>([:])

  /// A document that was not tried yet.
  private struct Untried {
    let document: PublishedDocument
    let number: Int
    /// Whether it was told that it is late.
    var isTold = false
  }

  private struct State {
    /// The last documents written here, by file.
    var written: [String: PublishedDocument] = [:]
    /// What could not be written, by file: the newest of each, and why.
    var owed: [String: (document: PublishedDocument, reason: String)] = [:]
    /// What is to be written, by file: the newest of each.
    var untried: [String: Untried] = [:]
    /// What is to be written, and not noted yet, by file.
    var unnoted: [String: PublishedDocument] = [:]
    /// Whose copies are looked for: where the directory does not answer, none is a second time.
    var sought: Set<String> = []
    /// How many were handed over, and how often it was tried to write one.
    var (count, attempts) = (0, 0)
    var isWaiting = false
    var isWatched = false
    var hasEnded = false

    /// Notes that it was tried to write a document, and why it could not be.
    mutating func note(_ document: PublishedDocument, _ number: Int?, _ reason: String?) {
      attempts += 1
      if untried[document.file]?.number == number { untried[document.file] = nil }
      owed[document.file] = reason.map { (document: document, reason: $0) }
      if reason == nil { written[document.file] = document }
    }
  }

  /// - Parameters:
  ///   - copying: is called before documents are to be written, and again once each is.
  ///   - numbering: tells which documents in a copy's place another server may have written; by default none.
  ///   - later: passes the time until something is done.
  ///   - report: is told of each document what became of it; of one that fails again, only another reason.
  init(
    directory: String,
    copying: @escaping @Sendable (_ documents: [PublishedDocument], _ areWritten: Bool) -> Void = {
      _, _ in
    },
    numbering: @escaping Numbering = { _, _ in nil },
    later: @escaping CopyReader.Later = CopyReader.later,
    report: @escaping @Sendable (_ file: String, _ outcome: Outcome) -> Void
  ) {
    self.directory = directory
    self.copying = copying
    self.numbering = numbering
    self.later = later
    self.report = report
    queue = StaticFiles.queue(of: directory)
  }

  /// One for all that is written to a directory. What does not end there goes on after ``end()``, and must not go over what
  /// is written there once the copies are to be there again.
  static func queue(of directory: String) -> DispatchQueue {
    queues.withLock { queues in
      if let queue = queues[directory] { return queue }
      let queue = DispatchQueue(label: "published files")
      queues[directory] = queue
      return queue
    }
  }

  /// Writes a document soon.
  func write(_ document: PublishedDocument) {
    let number = state.withLock { state in
      state.count += 1
      state.untried[document.file] = Untried(document: document, number: state.count)
      if !state.hasEnded { state.unnoted[document.file] = document }
      return state.count
    }
    watch()
    noting.async { [self] in note() }
    queue.async { [self] in
      guard !state.withLock(\.hasEnded) else { return }
      noting.sync { note() }
      attempt(document, number)
      waitIfOwed()
    }
  }

  /// Notes all that is to be written, at once: of ten thousand documents, one by one would take long.
  private func note() {
    let documents = state.withLock { state in
      defer { state.unnoted = [:] }
      return Array(state.unnoted.values)
    }
    if !documents.isEmpty { copying(documents, false) }
  }

  /// Writes a document again if its copy, or a part of it, is gone, as after `rsync --delete` or behind a disk that was mounted since.
  func restore(_ document: PublishedDocument) {
    let file = document.file
    guard state.withLock({ $0.sought.insert(file).inserted }) else { return }
    queue.async { [self] in
      let gone = Self.names(of: document).filter {
        access(directory + "/" + $0, F_OK) != 0 && errno == ENOENT
      }
      // What somebody else put there is left to the next document.
      let isGone = gone.contains(file) || !gone.isEmpty && standing(file) == document.bytes
      let isLast = state.withLock { state in
        state.sought.remove(file)
        return state.untried[file] == nil && state.owed[file] == nil && !state.hasEnded
          && state.written[file]?.bytes == document.bytes
      }
      guard isGone, isLast else { return }
      attempt(document)
      waitIfOwed()
    }
  }

  /// Where a document and its parts stand.
  private static func names(of document: PublishedDocument) -> [String] {
    let (file, parts) = (document.file, document.file + ".parts/")
    let statement = document.parts.hasStatement ? [parts + "statement"] : []
    return [file, file + ".gz", parts + "payload/" + document.parts.digest] + statement
  }

  /// Writes a document, and keeps it for later if that fails.
  ///
  /// - Parameters:
  ///   - number: which one it is; `nil` if it failed before.
  ///   - before: why it failed before; `nil` if it is new.
  private func attempt(
    _ document: PublishedDocument, _ number: Int? = nil, after before: String? = nil
  ) {
    let foreign = foreignDocument(inPlaceOf: document)
    if let reason = Self.write(document, to: directory) {
      // What stands there is read before it counts as tried: that may not end either.
      let lacks = reason != before && isLacking(document, in: standing(document.file))
      state.withLock { $0.note(document, number, reason) }
      guard reason != before else { return }
      return tell(document.file, .failed(reason, isLacking: lacks))
    }
    copying([document], true)
    state.withLock { $0.note(document, number, nil) }
    guard let foreign else { return tell(document.file, .written) }
    let denials = Self.denials(in: foreign).subtracting(Self.denials(in: document.bytes))
    tell(document.file, .replaced(denials: denials.sorted()))
  }

  /// Tells what became of a document, unless the copies are elsewhere by now.
  private func tell(_ file: String, _ outcome: Outcome) {
    telling.sync {
      guard !state.withLock(\.hasEnded) else { return }
      report(file, outcome)
      // Of a newer one that waits, nothing that was told counts any more.
      state.withLock { $0.untried[file]?.isTold = false }
    }
  }

  /// Looks after a while whether what is to be written was.
  private func watch() {
    let attempts = state.withLock { state -> Int? in
      guard !state.isWatched, !state.hasEnded, !state.untried.isEmpty else { return nil }
      state.isWatched = true
      return state.attempts
    }
    guard let attempts else { return }
    later(Self.longest) { [weak self] in self?.tellLate(since: attempts) }
  }

  /// Tells of all that waits if nothing was finished meanwhile: ten thousand copies take longer, and are no reason to. The directory
  /// is not asked: it does not answer.
  private func tellLate(since attempts: Int) {
    telling.sync {
      let (late, written) = state.withLock {
        state -> ([String: Untried], [String: PublishedDocument]) in
        state.isWatched = false
        let isStuck = state.attempts == attempts && !state.hasEnded
        return (isStuck ? state.untried.filter { !$0.value.isTold } : [:], state.written)
      }
      for (file, untried) in late.sorted(by: { $0.key < $1.key }) {
        let lacks = isLacking(untried.document, in: written[file]?.bytes)
        let isStill = state.withLock { state in
          guard state.untried[file]?.number == untried.number else { return false }
          state.untried[file]?.isTold = true
          return true
        }
        guard isStill else { continue }
        let reason =
          "writing it has not ended for \(Self.longest) seconds, as on a file server that is away"
        report(file, .failed(reason, isLacking: lacks))
      }
    }
    watch()
  }

  private func waitIfOwed() {
    let mustWait = state.withLock { state in
      guard !state.owed.isEmpty, !state.isWaiting, !state.hasEnded else { return false }
      state.isWaiting = true
      return true
    }
    if mustWait { later(Self.pause) { [weak self] in self?.writeOwed() } }
  }

  /// Writes again what could not be written. On the same queue, so that what is published meanwhile comes after it.
  private func writeOwed() {
    queue.async { [self] in
      let owed = state.withLock { state in
        state.isWaiting = false
        return state.hasEnded ? [:] : state.owed
      }
      for (file, (document, reason)) in owed.sorted(by: { $0.key < $1.key })
      where !state.withLock(\.hasEnded) {
        if isOutdated(document) {
          state.withLock { $0.owed[file] = nil }
          tell(file, .written)
        } else {
          attempt(document, after: reason)
        }
      }
      waitIfOwed()
    }
  }

  /// Whether a newer document stands in its place, as another server that has the directory may have written it meanwhile.
  /// What this server wrote last is older, whatever its number; so is what no key of this registry signed.
  private func isOutdated(_ document: PublishedDocument) -> Bool {
    guard let own = document.number, let bytes = standing(document.file),
      bytes != state.withLock({ $0.written[document.file]?.bytes }),
      let number = numbering(bytes, document.file)
    else { return false }
    return own < number
  }

  /// Whether apps that read these bytes lack something that this document has.
  private func isLacking(_ document: PublishedDocument, in bytes: [UInt8]?) -> Bool {
    guard let bytes, let said = Self.decisions(in: bytes) else { return true }
    return said != Self.decisions(in: document.bytes)
  }

  /// All that a document says, but for when it was signed and for how long: a copy that lacks only that refuses nobody.
  private static func decisions(in document: [UInt8]) -> [JSONValue]? {
    guard let json = (try? JSONValue(parsing: document))?.objectValue else { return nil }
    var statement = json["statement"]?.objectValue ?? [:]
    for name in ["version", "issued", "expires", "payloadDigest", "previous"] {
      statement[name] = nil
    }
    let keys = (json["payload"]?.objectValue?["keys"]?.arrayValue ?? []).map { entry in
      guard var key = entry.objectValue else { return entry }
      key["expire"] = nil
      return JSONValue.object(key)
    }
    return keys + [.object(statement), json["keySets"] ?? .null]
  }

  private func standing(_ file: String) -> [UInt8]? {
    CopyFile.read(directory + "/" + file)
  }

  /// What stands in a document's place, if it is neither that one nor what was written here last. What stood there
  /// before the start was compared with the store then.
  private func foreignDocument(inPlaceOf document: PublishedDocument) -> [UInt8]? {
    guard let last = state.withLock({ $0.written[document.file] }),
      let bytes = standing(document.file),
      bytes != document.bytes, bytes != last.bytes
    else { return nil }
    return bytes
  }

  private static func denials(in document: [UInt8]) -> Set<String> {
    let statement = (try? JSONValue(parsing: document))?.objectValue?["statement"]?.objectValue
    return Set((statement?["denied"]?.arrayValue ?? []).compactMap(\.stringValue))
  }

  /// Waits until everything is noted that is to be written, and was tried, for that ``patience`` at most.
  ///
  /// - Returns: the files that were not tried by then.
  @discardableResult
  func finish() async -> Set<String> {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      noting.async { [self] in
        note()
        continuation.resume()
      }
    }
    let isDone = await soon({})
    return isDone ? [] : state.withLock { Set($0.untried.keys) }
  }

  /// Writes what is to be written already, and nothing after that, nor after ``patience``. What is being written then goes on, untold.
  func end() async {
    _ = await soon { [self] in
      telling.sync { state.withLock { $0.hasEnded = true } }
    }
  }

  /// Does something once everything was tried that is to be written, and after ``patience`` in any case.
  ///
  /// - Returns: whether everything was.
  private func soon(_ work: @escaping @Sendable () -> Void) async -> Bool {
    await withCheckedContinuation { continuation in
      let answer = OneShot(otherwise: false) { continuation.resume(returning: $0) }
      queue.async {
        work()
        answer.give(true)
      }
      later(Self.patience) {
        work()
        answer.give(false)
      }
    }
  }

  /// Why it could not be written; `nil` where it was.
  private static func write(_ document: PublishedDocument, to directory: String) -> String? {
    guard let compressed = Gzip.compressed(document.bytes) else { return "no memory to compress" }
    do throws(PublicFolder.Failure) {
      let folder = try PublicFolder(directory)
      try writeParts(of: document, in: folder.folder(document.file + ".parts"))
      // The compressed one first: who takes it has the newer document, never an older one afterwards
      // from the same name.
      try folder.replace(document.file + ".gz", with: compressed)
      try folder.replace(document.file, with: document.bytes)
      try folder.flush()
      return nil
    } catch { return error.description }
  }

  private static func writeParts(
    of document: PublishedDocument, in parts: borrowing PublicFolder
  ) throws(PublicFolder.Failure) {
    let payloads = try parts.folder("payload")
    try payloads.replace(document.parts.digest, with: document.parts.payload)
    try payloads.flush()
    if let statement = document.parts.statement() {
      try parts.replace("statement", with: statement)
    } else {
      try parts.remove("statement")
    }
    payloads.removePayloads(before: document.parts.digest)
    try parts.flush()
  }
}

/// What ``StaticFiles`` writes beside a document, for whoever puts another one in its place by hand.
package struct FilesBeside: Sendable {
  /// The payload, and its name below `payload/`.
  package let payload: [UInt8]
  package let digest: String
  /// `nil` where clients need the whole document, and no statement may stand alone.
  package let statement: [UInt8]?

  package init(_ document: JSONObject) {
    let parts = DocumentParts(document)
    (payload, digest, statement) = (parts.payload, parts.digest, parts.statement())
  }

  /// The document for `.gz`; `nil` where zlib has no memory.
  package static func compressed(_ bytes: [UInt8]) -> [UInt8]? { Gzip.compressed(bytes) }

  /// Removes payloads that two newer ones stand beside.
  package func removeOld(in directory: String) {
    if let folder = try? PublicFolder(directory) { folder.removePayloads(before: digest) }
  }
}
