import RegistryServer
import RegistryStores

/// Reads a record all the time, as a server that follows does.
final class StoreReader: Sendable {
  private let task: Task<[KillLedger.Reading], Never>

  /// - Parameter newest: the version that was seen before.
  init(_ store: any RegistryStore, from newest: Int64) {
    task = Task {
      var (readings, newest) = ([KillLedger.Reading](), newest)
      while !Task.isCancelled {
        // A database that is killed meanwhile is no reading.
        if let record = try? await store.record(named: NumberedRecord.name) {
          let isWhole = NumberedRecord.isWhole(record)
          // The same again proves nothing.
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

  /// Ends it.
  ///
  /// - Returns: what was seen, in its order.
  func finish() async -> [KillLedger.Reading] {
    task.cancel()
    return await task.value
  }
}
