import SslPinningPlatform

/// What the file of a record holds: the record, and the newest entries of its history, which so
/// become part of the same atomic replacement as the record itself.
///
/// Layout, numbers big-endian: `SSPnFS1\n`, version, entries and bytes of the history file (64 bits
/// each), count of entries here (32 bits), each entry's length (32 bits) and bytes, the record's
/// length (64 bits) and bytes, and the SHA-256 of everything before.
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
    let format = file[Self.magic.count]
    guard format == Self.format else {
      throw .newerSchema(path: path, found: Int64(format) - 48, known: Int64(Self.format) - 48)
    }
    guard Array(file.suffix(32)) == Digest.sha256(file.dropLast(32)) else {
      throw .damaged(path: path, reason: "its checksum is another")
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
