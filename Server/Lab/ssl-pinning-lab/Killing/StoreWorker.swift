import Foundation
import RegistryServer
import RegistryStores

/// The processes to be killed: `drill store-writer` and `drill store-leader`, each with
/// `--store KIND --dsn PLACE`.
enum StoreWorker {
  /// Writes version after version until it is killed. Each acknowledged version is a line on standard output,
  /// in one write.
  static func write(_ store: any RegistryStore) async throws(StoreError) {
    var (version, isReady) = (Int64(0), false)
    while true {
      do throws(StoreError) {
        if !isReady {
          version = try await store.record(named: NumberedRecord.name)?.version ?? 0
          say("ready \(version)")
          isReady = true
        }
        let next = version + 1
        switch try await store.replace(
          NumberedRecord.name, version: version, with: NumberedRecord.bytes(of: next),
          history: NumberedRecord.history(of: next))
        {
        case .replaced(let new):
          version = new
          say("acknowledged \(new)")
        case .conflict(let other):
          // Nobody else writes, so this was our own change, whose answer got lost.
          version = other
        }
      } catch {
        guard case .unreachable = error else { throw error }
        // The database was killed, too.
        try? await Task.sleep(nanoseconds: 20_000_000)
      }
    }
  }

  /// Leads until it is killed.
  static func lead(_ store: any RegistryStore) async throws(StoreError) {
    while true {
      if let leadership = try await store.lead() {
        say("leading")
        await leadership.ended()
      }
      try? await Task.sleep(nanoseconds: 50_000_000)
    }
  }

  /// Runs one of the two.
  ///
  /// - Returns: the exit status; returns only for wrong arguments or a failing store.
  static func run(_ mode: String, _ arguments: [String]) async -> Int32 {
    var (kind, dsn) = (nil as DurableStore?, nil as String?)
    var rest = arguments[...]
    while let name = rest.popFirst(), let value = rest.popFirst() {
      switch name {
      case "--store": kind = DurableStore(rawValue: value)
      case "--dsn": dsn = value
      default: return 2
      }
    }
    guard let kind, let dsn else { return 2 }
    do throws(StoreError) {
      let store = try kind.open(dsn)
      if mode == "store-writer" { try await write(store) } else { try await lead(store) }
    } catch {
      say("failed: \(error)")
    }
    return 3
  }

  private static func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}

/// Reads a record continuously, like a following server.
final class StoreReader: Sendable {
  private let task: Task<[KillLedger.Reading], Never>

  /// - Parameter newest: the last version seen so far.
  init(_ store: any RegistryStore, from newest: Int64) {
    task = Task {
      var (readings, newest) = ([KillLedger.Reading](), newest)
      while !Task.isCancelled {
        // An error is no reading: the database may just have been killed.
        if let record = try? await store.record(named: NumberedRecord.name) {
          let isWhole = NumberedRecord.isWhole(record)
          // The same version again proves nothing.
          if record.version != newest || !isWhole {
            readings.append(.init(version: record.version, isWhole: isWhole))
            newest = record.version
          }
        }
        try? await Task.sleep(nanoseconds: 500_000)
      }
      await store.close()
      return readings
    }
  }

  /// Stops reading.
  ///
  /// - Returns: the readings, in order.
  func finish() async -> [KillLedger.Reading] {
    task.cancel()
    return await task.value
  }
}

/// The record that is written while processes are killed. Its bytes follow from the version number, so that
/// a reader can check every byte.
enum NumberedRecord {
  static let name = "numbered.json"
  /// How many history entries each version adds.
  static let entries: Int64 = 2

  /// The bytes of a version: usually a few KiB, sometimes enough to fill many pages.
  static func bytes(of version: Int64) -> [UInt8] {
    var noise = Noise(state: UInt64(bitPattern: version))
    let size = version % 16 == 0 ? 150_000 : 200 + Int(noise.next() % 4000)
    return words(count: size / 8, &noise)
  }

  /// The entries that this version adds.
  static func history(of version: Int64) -> [[UInt8]] {
    (1...entries).map { place in
      var noise = Noise(state: UInt64(bitPattern: version * entries + place))
      return words(count: 20 + Int(noise.next() % 200), &noise)
    }
  }

  /// Whether a record is complete and unaltered.
  static func isWhole(_ record: StoredRecord) -> Bool { record.bytes == bytes(of: record.version) }

  /// Whether these are the history of a record of this version, newest first: all of it, or the `limit`
  /// newest entries.
  static func isWhole(_ history: [StoredEntry], of version: Int64, limit: Int) -> Bool {
    guard history.count == min(limit, Int(version * entries)) else { return false }
    return history.enumerated().allSatisfy { index, entry in
      let number = version * entries - Int64(index)
      let (origin, place) = ((number - 1) / entries + 1, Int((number - 1) % entries))
      return entry.number == number && entry.bytes == self.history(of: origin)[place]
    }
  }

  private static func words(count: Int, _ noise: inout Noise) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(count * 8)
    for _ in 0..<count { withUnsafeBytes(of: noise.next()) { out.append(contentsOf: $0) } }
    return out
  }

  /// SplitMix64: without a pattern, so that mixed-up bytes are noticed.
  private struct Noise: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }
}

/// The kinds of store that must keep what they acknowledged.
enum DurableStore: String, CaseIterable, Sendable {
  case fileSystem = "fs"
  case sqlite
  case postgres
  case redis

  /// Opens a handle.
  ///
  /// - Parameter dsn: a directory, a file, or the URL of a database.
  func open(_ dsn: String) throws(StoreError) -> any RegistryStore {
    switch self {
    case .fileSystem: try FileSystemStore(directory: dsn)
    case .sqlite: try SQLiteStore(path: dsn)
    case .postgres: try PostgresStore(dsn: dsn)
    case .redis: try RedisStore(dsn: dsn)
    }
  }
}
