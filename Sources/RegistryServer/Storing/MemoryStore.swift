/// A store that ends with the process. See ``RegistryStore`` for the contract.
public actor MemoryStore: RegistryStore {
  private var records: [String: StoredRecord] = [:]
  private var isClosed = false

  /// An empty store.
  public init() {}

  public func record(named name: String) throws(StoreError) -> StoredRecord? {
    guard !isClosed else { throw .closed }
    return records[name]
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8]
  ) throws(StoreError) -> StoreReplacement {
    guard !isClosed else { throw .closed }
    let current = records[name]?.version ?? 0
    guard current == version else { return .conflict(version: current) }
    records[name] = StoredRecord(version: version + 1, bytes: bytes)
    return .replaced(version: version + 1)
  }

  public func close() { isClosed = true }
}
