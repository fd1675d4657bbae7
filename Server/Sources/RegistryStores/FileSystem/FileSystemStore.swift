import Foundation
import SslPinningPlatform

/// A store in the files of one directory. See ``RegistryStore`` for the contract.
///
/// - `records/<name>/` belongs to one record: `record` is what is in force, `history` the older
///   entries, `record.lock` the lock that writers of all processes take turns by.
/// - A record is replaced by writing it beside, flushing it, renaming it into place and flushing the
///   directory. Its newest history entries are in the same file, so both are there or neither; they
///   are folded into `history` later, before a replacement.
/// - Changes by other processes are noticed by probing the directories four times a second, one
///   look for each record: for thousands of documents, SQLite is the better choice.
/// - The leader holds a lock on the file `leader`, which the kernel lets go of when it dies.
/// - Directories are made with mode 0700 and files with 0600.
///
/// Hazards: a directory of its own, not the one that documents are copied to. Not for network file systems, where such locks and renames often hold on one machine
/// only. On a file system that ignores letter case, names that differ in nothing else are one
/// record. A backup that copies the files while a server writes has each record whole, but not all
/// records at one moment.
public final class FileSystemStore: RegistryStore {
  private let directory: String
  private let writing = WorkQueue("registry store writer")
  private let reading = WorkQueue("registry store reader")
  private let hub = ChangeHub()
  private let leaderships: FileLeaderships
  private let state = Locked(State())

  private struct State {
    var isClosed = false
    var polling: RepeatingWork?
  }

  /// Opens a directory, creating it where missing.
  ///
  /// - Throws: ``StoreError/cannotOpen(path:reason:)``.
  public init(directory: String) throws(StoreError) {
    self.directory = directory
    let records = directory + "/records"
    do {
      try FileManager.default.createDirectory(
        atPath: records, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    } catch {
      throw .cannotOpen(path: directory, reason: "it cannot be made")
    }
    guard access(records, R_OK | W_OK | X_OK) == 0 else {
      throw .cannotOpen(path: records, errno: errno)
    }
    Self.flush(directory: directory)
    leaderships = FileLeaderships(path: Self.leader(in: directory))
  }

  /// Why no server could lead on this store as this user; `nil` if nothing is known to keep it from that. Makes nothing.
  package static func leadershipProblem(directory: String) -> StoreError? {
    FileLock.problem(leader(in: directory))
  }

  private static func leader(in directory: String) -> String { directory + "/leader" }

  public func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await run(reading, name) { folder throws(StoreError) in
      try folder.read().map { StoredRecord(version: $0.version, bytes: $0.bytes) }
    }
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try await run(writing, name) { folder throws(StoreError) in
      try folder.replace(version: version, with: bytes, history: history)
    }
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await run(reading, name) { folder throws(StoreError) in
      try folder.history(before: before, limit: limit)
    }
  }

  public func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try await run(writing, name) { folder throws(StoreError) in
      try folder.forgetHistory(through: number)
    }
  }

  public func changes() -> AsyncStream<String> {
    let stream = hub.stream()
    state.withLock { state in
      guard !state.isClosed, state.polling == nil else { return }
      let watch = Locked(RecordWatch(directory: directory + "/records"))
      state.polling = reading.every(250) { [hub] in
        for name in watch.withLock({ $0.probe() }) { hub.tell(name) }
      }
    }
    return stream
  }

  public func lead() async throws(StoreError) -> (any StoreLeadership)? {
    guard !isClosed else { throw .closed }
    return try await leaderships.take()
  }

  public func close() async {
    state.withLock { state in
      state.isClosed = true
      state.polling = nil
    }
    hub.finish()
    await leaderships.end()
    // What is under way ends first.
    try? await writing.run {}
    try? await reading.run {}
  }

  private var isClosed: Bool { state.withLock { $0.isClosed } }

  private func run<Value: Sendable>(
    _ queue: WorkQueue, _ name: String,
    _ work: @escaping @Sendable (RecordDirectory) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try RecordName.check(name)
    return try await queue.run { [self] () throws(StoreError) in
      guard !isClosed else { throw .closed }
      return try work(RecordDirectory(path: directory + "/records/" + name))
    }
  }

  /// Makes sure that new names in a directory survive a loss of power, where the file system can.
  static func flush(directory: String) {
    let descriptor = open(directory, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    Foundation.close(descriptor)
  }
}

/// The older entries of a record's history, in a file that is only appended to.
///
/// Each entry is a frame that is read from the end: its bytes, the first 8 bytes of the SHA-256 over
/// its number (64 bits, big-endian) and its bytes, and its length (32 bits). How far the file counts says the ``RecordFile``; what stands behind that was left by a
/// process that died, and is cut off before the next is appended.
///
/// Entries that are forgotten become a hole at the beginning (zeros, which no trailer is, and no room on the disk), so
/// that the numbers and places of the others stay.
struct HistoryFile {
  /// What a frame has beside the entry.
  static let overhead = 12

  let path: String

  /// Makes an empty file where there is none; one that root makes belongs to the owner of the directory.
  func create() throws(StoreError) {
    let new = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    if new >= 0 {
      var place = stat()
      let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
      if geteuid() == 0, stat(directory, &place) == 0 { fchown(new, place.st_uid, place.st_gid) }
      close(new)
      return
    }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    close(descriptor)
  }

  /// Appends entries behind the `length` bytes that count, and flushes them to the disk.
  ///
  /// - Parameter number: of the first entry.
  /// - Returns: how many bytes count now.
  func append(
    _ entries: [[UInt8]], from number: Int64, at length: Int64
  ) throws(StoreError) -> Int64 {
    var frames: [UInt8] = []
    for (index, entry) in entries.enumerated() {
      frames += entry
      frames += Self.checksum(entry, number + Int64(index))
      frames.append(bigEndian: UInt32(entry.count))
    }
    return try withFile("append to", forWriting: true) { file in
      guard try file.seekToEnd() >= UInt64(length) else { throw Shorter() }
      try file.truncate(atOffset: UInt64(length))
      try file.write(contentsOf: Data(frames))
      try file.synchronize()
      return length + Int64(frames.count)
    }
  }

  /// The newest entries before a number, newest first.
  ///
  /// - Parameters:
  ///   - count: how many entries the file has.
  ///   - length: how many of its bytes count.
  func entries(
    before: Int64, limit: Int, count: Int64, length: Int64
  ) throws(StoreError) -> [StoredEntry] {
    guard limit > 0, before > 1, count > 0 else { return [] }
    return try withFile("read", forWriting: false) { file in
      var found: [StoredEntry] = []
      var (number, end) = (count, length)
      while number > 0, end >= Int64(Self.overhead), found.count < limit {
        let trailer = try read(file, from: end - 12, count: 12)
        guard trailer.contains(where: { $0 != 0 }) else { break }
        let size = Int64(trailer.suffix(4).reduce(0) { $0 << 8 | UInt32($1) })
        if number < before {
          let entry = try read(file, from: end - 12 - size, count: Int(size))
          guard Self.checksum(entry, number) == trailer.prefix(8) else { throw Torn() }
          found.append(StoredEntry(number: number, bytes: entry))
        }
        number -= 1
        end -= size + Int64(Self.overhead)
      }
      return found
    }
  }

  /// Forgets the entries up to a number.
  ///
  /// - Parameters:
  ///   - count: how many entries the file has, those forgotten before included.
  ///   - length: how many of its bytes count.
  func forget(through last: Int64, count: Int64, length: Int64) throws(StoreError) {
    try withFile("forget in", forWriting: true) { file in
      var (number, end) = (count, length)
      while number > last, end >= Int64(Self.overhead) {
        let trailer = try read(file, from: end - 12, count: 12)
        // Forgotten before, up to a later one.
        guard trailer.contains(where: { $0 != 0 }) else { return }
        end -= trailer.suffix(4).reduce(0) { $0 << 8 | Int64($1) } + Int64(Self.overhead)
        number -= 1
      }
      guard end > 0 else { return }
      let kept = try read(file, from: end, count: Int(length - end))
      // Beside, so that somebody who reads goes on in the old one.
      let beside = path + ".new"
      let descriptor = open(
        beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw StoreError.cannotOpen(path: beside, errno: errno) }
      let next = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      try next.seek(toOffset: UInt64(end))
      try next.write(contentsOf: Data(kept))
      try next.truncate(atOffset: UInt64(length))
      try next.synchronize()
      guard rename(beside, path) == 0 else {
        throw StoreError.cannotOpen(path: path, errno: errno)
      }
    }
  }

  private struct Shorter: Error {}
  private struct Torn: Error {}

  private func read(_ file: FileHandle, from offset: Int64, count: Int) throws -> [UInt8] {
    guard offset >= 0 else { throw Torn() }
    try file.seek(toOffset: UInt64(offset))
    guard count > 0 else { return [] }
    guard let data = try file.read(upToCount: count), data.count == count else { throw Shorter() }
    return [UInt8](data)
  }

  private func withFile<Value>(
    _ step: String, forWriting: Bool, _ body: (FileHandle) throws -> Value
  ) throws(StoreError) -> Value {
    let descriptor = open(path, (forWriting ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    do {
      return try body(FileHandle(fileDescriptor: descriptor, closeOnDealloc: true))
    } catch let error as StoreError {
      throw error
    } catch is Shorter {
      throw .damaged(path: path, reason: "it is shorter than the record says")
    } catch is Torn {
      throw .damaged(path: path, reason: "an entry's checksum is another")
    } catch {
      throw .failed(operation: "\(step) \(path)", reason: error.localizedDescription)
    }
  }

  private static func checksum(_ entry: [UInt8], _ number: Int64) -> ArraySlice<UInt8> {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(entry.count + 8)
    bytes.append(bigEndian: number)
    return Digest.sha256(bytes + entry).prefix(8)
  }
}
