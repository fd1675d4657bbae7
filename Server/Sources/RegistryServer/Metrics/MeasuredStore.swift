import RegistryStores

/// A store whose every call is timed and counted. What it says and throws is that of the store inside.
struct MeasuredStore: RegistryStore {
  /// The store that is measured.
  let base: any RegistryStore
  let metrics: ServerMetrics
  /// A monotonic clock's reading.
  let reading: @Sendable () -> Duration

  /// Measures a store.
  ///
  /// - Parameter reading: a monotonic clock's reading; tests pass their own.
  init(
    _ base: any RegistryStore, metrics: ServerMetrics,
    reading: @escaping @Sendable () -> Duration = MonotonicReading.now
  ) {
    self.base = base
    self.metrics = metrics
    self.reading = reading
  }

  func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await measured(.record) { () async throws(StoreError) in
      try await base.record(named: name)
    }
  }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try await measured(.replace) { () async throws(StoreError) in
      try await base.replace(name, version: version, with: bytes, history: history)
    }
  }

  func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await measured(.history) { () async throws(StoreError) in
      try await base.history(of: name, before: before, limit: limit)
    }
  }

  func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try await measured(.forget) { () async throws(StoreError) in
      try await base.forgetHistory(of: name, through: number)
    }
  }

  func changes() -> AsyncStream<String> { base.changes() }

  func lead() async throws(StoreError) -> (any StoreLeadership)? {
    try await measured(.lead) { () async throws(StoreError) in try await base.lead() }
  }

  var warning: String? { get async { await base.warning } }

  func close() async { await base.close() }

  private func measured<Value>(
    _ operation: StoreOperation, _ call: () async throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let start = reading()
    do throws(StoreError) {
      let value = try await call()
      metrics.stored(operation, taking: reading() - start, failed: false)
      return value
    } catch {
      metrics.stored(operation, taking: reading() - start, failed: true)
      throw error
    }
  }
}

/// A kind of call to the store; the label `operation`.
enum StoreOperation: String, CaseIterable, Sendable {
  case record
  case replace
  case history
  case forget
  case lead
}
