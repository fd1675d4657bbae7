import Foundation
import SslPinningPlatform

/// The directory of one record: `record`, its lock, and `history`.
struct RecordDirectory {
  /// From so many bytes on, entries are folded out of the record's file into the history file.
  static let mostPending = 16 << 10

  private let path: String
  private let file: AtomicFile
  private let older: HistoryFile

  init(path: String) {
    self.path = path
    file = AtomicFile(path: path + "/record", patience: 5000)
    older = HistoryFile(path: path + "/history")
  }

  /// What is in force; `nil` while there is none.
  func read() throws(StoreError) -> RecordFile? {
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try file.read(limit: RecordFile.maximumBytes) } catch {
      throw Self.damage(error)
    }
    return try decoded(bytes).get()
  }

  /// The same for whoever holds the lock.
  private func current(_ held: borrowing AtomicFile.Held) -> Result<RecordFile?, StoreError> {
    let bytes: [UInt8]?
    do throws(FileError) { bytes = try held.read(limit: RecordFile.maximumBytes) } catch {
      return .failure(Self.damage(error))
    }
    return decoded(bytes)
  }

  /// Replaces what is in force, under the lock of this record.
  func replace(
    version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) throws(StoreError) -> StoreReplacement {
    if version == 0 { try create() }
    // Without its directory there is no record, and none is made for a wrong version.
    guard access(path, F_OK) == 0 else { return .conflict(version: 0) }
    let result: Result<StoreReplacement, StoreError>
    do throws(FileError) {
      result = try file.withLock { held throws(FileError) in
        let current: RecordFile
        switch self.current(held) {
        case .success(let found): current = found ?? RecordFile()
        case .failure(.damaged) where version == 0:
          if let error = setAside() { return .failure(error) }
          current = RecordFile()
        case .failure(let error): return .failure(error)
        }
        guard current.version == version else {
          return .success(.conflict(version: current.version))
        }
        let replacing = Result { () throws(StoreError) in
          var next = try folded(current)
          next.version = try StoredRecord.number(after: version, of: path)
          return next
        }
        switch replacing {
        case .failure(let error): return .failure(error)
        case .success(var next):
          next.bytes = bytes
          next.pending += history
          try held.write(next.encoded)
          return .success(.replaced(version: next.version))
        }
      }
    } catch { throw Self.failure(error) }
    return try result.get()
  }

  /// Forgets the oldest entries, under the lock of this record.
  func forgetHistory(through number: Int64) throws(StoreError) {
    guard access(path, F_OK) == 0 else { return }
    let result: Result<Bool, StoreError>
    do throws(FileError) {
      result = try file.withLock { held throws(FileError) in
        let found = current(held)
        let next = Result { () throws(StoreError) in
          try found.get().flatMap { record throws(StoreError) in
            try forgotten(through: number, of: record)
          }
        }
        if case .success(let next?) = next { try held.write(next.encoded) }
        return next.map { $0 != nil }
      }
    } catch { throw Self.failure(error) }
    _ = try result.get()
  }

  /// Forgets entries in the history file.
  ///
  /// - Returns: the record without those that are in its own file; `nil` if there are none to forget.
  private func forgotten(
    through number: Int64, of record: RecordFile
  ) throws(StoreError) -> RecordFile? {
    let last = min(number, record.foldedCount + Int64(record.pending.count) - 1)
    let folded = min(last, record.foldedCount)
    guard folded > 0 || last > record.foldedCount else { return nil }
    try older.forget(through: folded, count: record.foldedCount, length: record.foldedLength)
    guard last > record.foldedCount else { return nil }
    var next = record
    next.pending.removeFirst(Int(last - record.foldedCount))
    next.foldedCount = last
    return next
  }

  /// The newest entries before a number, newest first.
  func history(before: Int64?, limit: Int) throws(StoreError) -> [StoredEntry] {
    guard let record = try read(), limit > 0 else { return [] }
    let before = before ?? .max
    var found: [StoredEntry] = []
    for (index, entry) in record.pending.enumerated().reversed() where found.count < limit {
      let number = record.foldedCount + Int64(index) + 1
      if number < before { found.append(StoredEntry(number: number, bytes: entry)) }
    }
    return found
      + (try older.entries(
        before: before, limit: limit - found.count, count: record.foldedCount,
        length: record.foldedLength))
  }

  /// Moves the entries of a large record file into the history file. They are on the disk there
  /// before the record file without them takes the place of the one that has them.
  private func folded(_ record: RecordFile) throws(StoreError) -> RecordFile {
    guard record.pending.reduce(0, { $0 + $1.count }) >= Self.mostPending else { return record }
    var next = record
    next.foldedLength = try older.append(
      record.pending, from: record.foldedCount + 1, at: record.foldedLength)
    next.foldedCount += Int64(record.pending.count)
    next.pending = []
    return next
  }

  /// Makes the directory, and the history file with it: its name is on the disk when the first
  /// record's is.
  private func create() throws(StoreError) {
    guard access(path + "/history", F_OK) != 0 else { return }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw .cannotOpen(path: path, errno: errno)
    }
    try older.create()
    FileSystemStore.flush(directory: URL(filePath: path).deletingLastPathComponent().path())
  }

  /// Keeps a record that cannot be read beside, with its history, which nobody knows the end of then, under names that are
  /// free. The record stays until the next one takes its place: on a full disk, that may not come.
  ///
  /// - Returns: why the next one cannot be begun.
  private func setAside() -> StoreError? {
    let record = path + "/record"
    var (own, there) = (stat(), stat())
    lstat(record, &own)
    var (number, kept, isKept) = (1, ".damaged", false)
    while !isKept {
      if lstat(record + kept, &there) == 0 {
        // By a call before, which could not write the next one.
        isKept = there.st_ino == own.st_ino
      } else if access(older.path + kept, F_OK) != 0 {
        break
      }
      number += 1
      kept = ".damaged-\(number)"
    }
    // The record comes last: if that is kept, so is its history. A directory cannot have two names, nor can a file on some
    // file systems.
    guard
      isKept
        || (rename(older.path, older.path + kept) == 0 || errno == ENOENT)
          && (link(record, record + kept) == 0 || rename(record, record + kept) == 0)
    else { return .failed(operation: "keeping \(record)", reason: Self.reason(errno)) }
    do throws(StoreError) { try older.create() } catch { return error }
    return nil
  }

  private static func reason(_ code: Int32) -> String {
    String(cString: strerror(code)).lowercased()
  }

  private func decoded(_ bytes: [UInt8]?) -> Result<RecordFile?, StoreError> {
    guard let bytes else { return .success(nil) }
    return Result { () throws(StoreError) in
      try RecordFile(decoding: bytes, path: path + "/record")
    }
  }

  /// What it means that the file of the record cannot be read: that is a matter of this record, but for a system that has
  /// no room for the moment. Only a bad sector, or what is no file, is damage: a record that may not be read, or whose file
  /// server is away, is sound, and nothing takes its place.
  private static func damage(_ error: FileError) -> StoreError {
    guard case .failed(let step, let path, let reason) = error, step == .open || step == .read
    else {
      return failure(error)
    }
    func isOne(of codes: [Int32]) -> Bool {
      codes.contains { reason == String(cString: strerror($0)) }
    }
    if isOne(of: [EMFILE, ENFILE, ENOMEM, EINTR]) { return failure(error) }
    let isDamaged = isOne(of: [EIO, EISDIR]) || reason == "not a regular file"
    return isDamaged
      ? .damaged(path: path, reason: reason.lowercased())
      : .withheld(path: path, reason: reason.lowercased())
  }

  private static func failure(_ error: FileError) -> StoreError {
    switch error {
    case .failed(.lock, _, _): .busy
    case .failed(let step, let path, let reason):
      .failed(operation: "\(step.rawValue) \(path)", reason: reason.lowercased())
    case .tooLarge(let path, let limit):
      .damaged(path: path, reason: "it is larger than \(limit) bytes")
    case .anothers(let path, let reason): .damaged(path: path, reason: reason)
    }
  }
}

/// What the file of a record holds: the record, and the newest entries of its history, which so
/// become part of the same atomic replacement as the record itself.
///
/// Layout, numbers big-endian: `SSPnFS1\n`, version, entries and bytes of the history file (64 bits
/// each), count of entries here (32 bits), each entry's length (32 bits) and bytes, the record's
/// length (64 bits) and bytes, and the SHA-256 of everything before, which every later format ends with, too.
struct RecordFile: Equatable {
  /// The most that such a file has: the largest record, and the entries not folded yet.
  static let maximumBytes = 256 << 20
  /// No history file has more entries, or bytes.
  private static let mostFolded: Int64 = 1 << 53
  private static let magic = Array("SSPnFS".utf8)
  private static let format = UInt8(ascii: "1")

  var version: Int64 = 0
  /// How many entries the history file has.
  var foldedCount: Int64 = 0
  /// How long the history file is; what stands behind that is a leftover.
  var foldedLength: Int64 = 0
  /// The entries that come after those of the history file.
  var pending: [[UInt8]] = []
  var bytes: [UInt8] = []

  var encoded: [UInt8] {
    var out = Self.magic + [Self.format, UInt8(ascii: "\n")]
    out.reserveCapacity(bytes.count + pending.reduce(128) { $0 + $1.count + 4 })
    for number in [version, foldedCount, foldedLength] { out.append(bigEndian: number) }
    out.append(bigEndian: UInt32(pending.count))
    for entry in pending {
      out.append(bigEndian: UInt32(entry.count))
      out += entry
    }
    out.append(bigEndian: Int64(bytes.count))
    out += bytes
    return out + Digest.sha256(out)
  }

  init() {}

  /// - Throws: ``StoreError/damaged(path:reason:)``, ``StoreError/newerSchema(path:found:known:)``.
  init(decoding file: [UInt8], path: String) throws(StoreError) {
    guard file.starts(with: Self.magic), file.count > 40 else {
      throw .damaged(path: path, reason: "it does not begin as a record")
    }
    // First: a format that one flipped byte says is nobody's.
    guard Array(file.suffix(32)) == Digest.sha256(file.dropLast(32)) else {
      throw .damaged(path: path, reason: "its checksum is another")
    }
    let format = file[Self.magic.count]
    guard format == Self.format else {
      throw .newerSchema(path: path, found: Int64(format) - 48, known: Int64(Self.format) - 48)
    }
    var rest = ByteReader(file.dropFirst(Self.magic.count + 2).dropLast(32))
    guard let version = rest.integer(Int64.self), let count = rest.integer(Int64.self),
      let length = rest.integer(Int64.self), let entries = rest.integer(UInt32.self)
    else { throw .damaged(path: path, reason: "it is too short") }
    guard (0...Self.mostFolded).contains(count), (0...Self.mostFolded).contains(length) else {
      throw .damaged(path: path, reason: "it has a history that no file can have")
    }
    (self.version, foldedCount, foldedLength) = (version, count, length)
    for _ in 0..<entries {
      guard let count = rest.integer(UInt32.self), let entry = rest.bytes(Int(count)) else {
        throw .damaged(path: path, reason: "an entry is too short")
      }
      pending.append(entry)
    }
    guard let count = rest.integer(Int64.self), let bytes = rest.bytes(Int(clamping: count)) else {
      throw .damaged(path: path, reason: "the record is too short")
    }
    self.bytes = bytes
  }
}

/// Notices replacements by probing the records' directories: a rename changes their time.
///
/// Times are as coarse as the kernel's ticks, so a directory that changed a moment before a probe may
/// change once more with the same time; it is told of again until its time is old enough.
struct RecordWatch {
  /// Nanoseconds after which a time is no longer given to a new change.
  private static let settled: UInt64 = 100_000_000

  private let directory: String
  private var times: [String: Int64] = [:]

  /// Begins with the directories as they are.
  init(directory: String) {
    self.directory = directory
    _ = probe()
  }

  /// The names of records that may have been replaced since the probe before.
  mutating func probe() -> [String] {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    var changed: [String] = []
    for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
      var status = stat()
      guard stat("\(directory)/\(name)", &status) == 0 else { continue }
      let time = Self.nanoseconds(status.st_mtim)
      if times[name] != time {
        changed.append(name)
        // Forgotten, so that the next probe tells of it again.
        let isSettled = (Self.nanoseconds(now) &- time).magnitude > Self.settled
        times[name] = isSettled ? time : nil
      }
    }
    return changed
  }

  /// A time tells of a change by being another one. Whoever owns the directory sets any, also one that is no number of
  /// nanoseconds: it wraps around.
  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}
