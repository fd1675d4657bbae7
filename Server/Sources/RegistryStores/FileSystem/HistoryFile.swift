import Foundation
import SslPinningPlatform

/// The older entries of a record's history, in a file that is only appended to.
///
/// Each entry is a frame that is read from the end: its bytes, the first 8 bytes of the SHA-256 over
/// its number (64 bits, big-endian) and its bytes, and its length (32 bits). How far the file counts says the ``RecordFile``; what stands behind that was left by a
/// process that died, and is cut off before the next is appended.
struct HistoryFile {
  /// What a frame has beside the entry.
  static let overhead = 12

  let path: String

  /// Makes an empty file where there is none.
  func create() throws(StoreError) {
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
      while number > 0, found.count < limit {
        let trailer = try read(file, from: end - 12, count: 12)
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
