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
    leaderships = FileLeaderships(path: directory + "/leader")
  }

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
