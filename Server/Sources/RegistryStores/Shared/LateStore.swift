import SslPinningPlatform

/// A store in files that could not be opened when the server started. Each call tries again; once it is open, it is
/// that store.
///
/// A database needs none of this: its store connects with the first call.
package final class LateStore: RegistryStore {
  private struct State {
    var store: (any RegistryStore)?
    var isClosed = false
  }

  private let queue = WorkQueue("late store")
  private let state = Locked(State())
  private let opening: @Sendable () throws(StoreError) -> any RegistryStore

  /// - Parameter opening: opens the store; may block.
  package init(opening: @escaping @Sendable () throws(StoreError) -> any RegistryStore) {
    self.opening = opening
  }

  package func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await opened().record(named: name)
  }

  package func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try await opened().replace(name, version: version, with: bytes, history: history)
  }

  package func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await opened().history(of: name, before: before, limit: limit)
  }

  package func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try await opened().forgetHistory(of: name, through: number)
  }

  /// Nothing before it is open: who follows a store has read it first.
  package func changes() -> AsyncStream<String> {
    state.withLock(\.store)?.changes() ?? AsyncStream { $0.finish() }
  }

  package func lead() async throws(StoreError) -> (any StoreLeadership)? {
    try await opened().lead()
  }

  package var warning: String? { get async { await state.withLock(\.store)?.warning } }

  package func close() async {
    let store = state.withLock { state in
      state.isClosed = true
      return state.store
    }
    await store?.close()
  }

  private func opened() async throws(StoreError) -> any RegistryStore {
    if let store = state.withLock(\.store) { return store }
    // One after the other on the queue: nobody opens it twice.
    return try await queue.run { [state, opening] () throws(StoreError) in
      let (known, isClosed) = state.withLock { ($0.store, $0.isClosed) }
      if let known { return known }
      guard !isClosed else { throw .closed }
      let store = try opening()
      state.withLock { $0.store = store }
      return store
    }
  }
}

extension StoreError {
  /// Whether it may work later though nobody changes a setting: the store did not answer, or was open before.
  ///
  /// - Parameter wasOpen: whether a store was seen here before. Else a file that cannot be opened, or a database that refuses, is
  ///   taken for a mistake of who configured it. Where one was, all of that passes: a full disk, a page that cannot be read, rights
  ///   that somebody took away. Only a store of a newer program, or another program's, is none to wait for.
  package func isAbsence(wasOpen: Bool) -> Bool {
    switch self {
    case .unreachable, .busy: true
    case .cannotOpen, .denied, .damaged, .withheld, .failed: wasOpen
    case .newerSchema, .foreign, .cannotBackUp, .cannotReadBackup, .invalidDSN, .invalidName, .seal,
      .closed:
      false
    }
  }
}
