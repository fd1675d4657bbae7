import Foundation
import RegistryServer
import RegistryStores

/// The process that is killed: `drill store-writer` and `drill store-leader`, each with
/// `--store KIND --dsn PLACE`.
enum StoreWorker {
  /// Writes version after version until it is killed. Each is a line on standard output once it is
  /// acknowledged, in one write.
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
          // Nobody else writes, so this was an own change whose answer got lost.
          version = other
        }
      } catch {
        guard case .unreachable = error else { throw error }
        // The database is being killed too.
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
  /// - Returns: the exit status, for wrong arguments and for a store that fails.
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
