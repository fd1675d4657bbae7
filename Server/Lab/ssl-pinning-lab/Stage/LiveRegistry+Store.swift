import Foundation
import RegistryServer
import RegistryStores

/// What somebody with the database's password does to the store, and what the operator does about it.
extension LiveRegistry {
  /// Reads the record of the document.
  func readRecord(_ take: ([UInt8]) throws -> Void) async throws {
    let other = try SQLiteStore(path: storePath)
    let record = try await other.record(named: Self.file)
    await other.close()
    guard let record else { throw Inconclusive("the store has no record") }
    try take(record.bytes)
  }

  /// Writes over the record of the document under the next version, without the signing key, and waits until the
  /// server has noticed.
  func editRecord(_ edit: ([UInt8]) throws -> [UInt8]) async throws {
    let other = try SQLiteStore(path: storePath)
    guard let record = try await other.record(named: Self.file) else {
      throw Inconclusive("the store has no record")
    }
    let made = try await other.replace(
      Self.file, version: record.version, with: try edit(record.bytes))
    await other.close()
    try show(made == .replaced(version: record.version + 1), "the record was not edited")
    try await waitForAlerts("nobody is told of the edited record") { $0.contains("seal-broken") }
  }

  /// Has the record begin anew from the last signed document: `store reset`.
  func resetRecord() async throws {
    let repair = try StoreRepair(configuration.withLock { $0 })
    _ = try await repair.reset(Self.file, to: .anew, at: clock.now())
    await repair.close()
    try await waitForAlerts("the record is not believed again") { $0.isEmpty }
    try await settle()
  }

  /// Shows that a server does not go on from a store that is gone, and says that it is a new one:
  /// `store reset .store --anew`. No server may be up.
  func takeStoreForNew() async throws {
    let repair = try StoreRepair(configuration.withLock { $0 })
    do {
      _ = try await repair.reset(Self.file, to: .anew, at: clock.now())
      throw Inconclusive("an empty store is taken for a new one")
    } catch StoreRepairError.store(.seal(.vanished(record: ".store"))) {}
    _ = try await repair.reset(".store", to: .anew, at: clock.now())
    await repair.close()
  }

  private func waitForAlerts(
    _ complaint: String, _ isSo: ([String]) -> Bool
  ) async throws {
    for _ in 0..<500 {
      if isSo(try await administrator.alerts()) { return }
      try await Task.sleep(nanoseconds: 20_000_000)
    }
    throw Inconclusive(complaint)
  }
}
