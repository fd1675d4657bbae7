/// A store that ends with the process. See ``RegistryStore`` for the contract.
///
/// Nobody else can change it, so it never tells of a change, and leads whoever asks first.
public actor MemoryStore: RegistryStore {
  private var records: [String: StoredRecord] = [:]
  private var entries: [String: [StoredEntry]] = [:]
  private var leader: LeadershipTerm?
  private var isClosed = false
  private let (stream, listeners) = AsyncStream<String>.makeStream()

  /// An empty store.
  public init() {}

  public func record(named name: String) throws(StoreError) -> StoredRecord? {
    guard !isClosed else { throw .closed }
    return records[name]
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) throws(StoreError) -> StoreReplacement {
    guard !isClosed else { throw .closed }
    let current = records[name]?.version ?? 0
    guard current == version else { return .conflict(version: current) }
    let next = try StoredRecord.number(after: version, of: name)
    records[name] = StoredRecord(version: next, bytes: bytes)
    for bytes in history {
      let number = (entries[name]?.last?.number ?? 0) + 1
      entries[name, default: []].append(StoredEntry(number: number, bytes: bytes))
    }
    return .replaced(version: next)
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) throws(StoreError) -> [StoredEntry] {
    guard !isClosed else { throw .closed }
    return (entries[name] ?? []).filter { $0.number < before ?? .max }.suffix(max(0, limit))
      .reversed()
  }

  public func forgetHistory(of name: String, through number: Int64) throws(StoreError) {
    guard !isClosed else { throw .closed }
    let newest = entries[name]?.last?.number
    entries[name]?.removeAll { $0.number <= number && $0.number != newest }
  }

  public nonisolated func changes() -> AsyncStream<String> { stream }

  public func lead() throws(StoreError) -> (any StoreLeadership)? {
    guard !isClosed else { throw .closed }
    if let leader, !leader.isOver { return nil }
    let new = LeadershipTerm()
    leader = new
    return new
  }

  public func close() async {
    isClosed = true
    listeners.finish()
    await leader?.resign()
  }
}
