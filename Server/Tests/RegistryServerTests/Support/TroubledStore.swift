import SslPinningPlatform

@testable import RegistryServer
@testable import RegistryStores

/// A store that fails, loses its answers, or goes back to an older state, when the test says so.
actor TroubledStore: WholeHistoryStore {
  /// What becomes of replacements.
  enum Trouble {
    case none
    /// They are not made.
    case refused
    /// They are made, and nobody is told.
    case answersLost
  }

  private var records: [String: StoredRecord] = [:]
  private var entries: [String: [StoredEntry]] = [:]
  private var trouble = Trouble.none
  private var isUnreadable = false
  private var gate: Gate?
  private var answers: Gate?
  private var reads: Gate?
  private var readAnswers: Gate?
  private var term: LeadershipTerm?
  /// How often somebody wanted to lead.
  let attempts = Locked(0)
  /// How often somebody gave the leadership back.
  let resigned = Locked(0)

  func fail(_ isFailing: Bool) { trouble = isFailing ? .refused : .none }

  func failReading(_ isFailing: Bool) { isUnreadable = isFailing }

  func get(into trouble: Trouble) { self.trouble = trouble }

  /// Holds replacements up until the gate is opened.
  func hold(at gate: Gate) { self.gate = gate }

  /// Holds up the answers to replacements that were made.
  func hold(answersAt gate: Gate) { answers = gate }

  /// Holds readers up before they read.
  func hold(readsAt gate: Gate?) { reads = gate }

  /// Holds readers up after they have read.
  func hold(answersToReadsAt gate: Gate?) { readAnswers = gate }

  /// Takes the leadership away, as the end of a connection does.
  func endLeadership() { term?.end() }

  /// Somebody else may lead now.
  func freeLeadership() { term = nil }

  /// Puts an older record in force under a newer version, as a backup that was played back does.
  func goBack(to record: StoredRecord, named name: String) {
    let version = (records[name]?.version ?? 0) + 1
    records[name] = StoredRecord(version: version, bytes: record.bytes)
  }

  /// Has an older record in force again under its own version, as a crash that loses writes leaves it;
  /// `nil`: none.
  func lose(to record: StoredRecord?, named name: String) { records[name] = record }

  func record(named name: String) async throws(StoreError) -> StoredRecord? {
    await reads?.wait()
    if isUnreadable { throw .unreachable(place: "the store", reason: "nobody is there") }
    let record = records[name]
    await readAnswers?.wait()
    return record
  }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    await gate?.wait()
    if trouble == .refused { throw .failed(operation: "insert", reason: "the disk is full") }
    let current = records[name]?.version ?? 0
    guard current == version else { return .conflict(version: current) }
    records[name] = StoredRecord(version: version + 1, bytes: bytes)
    for bytes in history {
      let number = Int64(entries[name]?.count ?? 0) + 1
      entries[name, default: []].append(StoredEntry(number: number, bytes: bytes))
    }
    await answers?.wait()
    if trouble == .answersLost { throw .unreachable(place: "db", reason: "no answer in time") }
    return .replaced(version: version + 1)
  }

  func history(of name: String, before: Int64?, limit: Int) -> [StoredEntry] {
    Array((entries[name] ?? []).filter { $0.number < before ?? .max }.suffix(limit).reversed())
  }

  nonisolated func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }

  func lead() -> (any StoreLeadership)? {
    attempts.withLock { $0 += 1 }
    guard term == nil else { return nil }
    term = LeadershipTerm { [resigned] in resigned.withLock { $0 += 1 } }
    return term
  }

  func close() {}
}
