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
      throw Self.failure(error)
    }
    return try decoded(bytes).get()
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
        switch decoded(try held.read(limit: RecordFile.maximumBytes)) {
        case .success(let found): current = found ?? RecordFile()
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

  private func decoded(_ bytes: [UInt8]?) -> Result<RecordFile?, StoreError> {
    guard let bytes else { return .success(nil) }
    return Result { () throws(StoreError) in
      try RecordFile(decoding: bytes, path: path + "/record")
    }
  }

  private static func failure(_ error: FileError) -> StoreError {
    switch error {
    case .failed(.lock, _, _): .busy
    case .failed(let step, let path, let reason):
      .failed(operation: "\(step.rawValue) \(path)", reason: reason.lowercased())
    case .tooLarge(let path, let limit):
      .damaged(path: path, reason: "it is larger than \(limit) bytes")
    }
  }
}
