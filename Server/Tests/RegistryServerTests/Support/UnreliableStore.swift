import SslPinningPlatform

@testable import RegistryServer
@testable import RegistryStores

/// A store that fails now and then, before or after it did what it was asked for, and takes its time.
actor UnreliableStore: WholeHistoryStore {
  private let base = MemoryStore()
  private var random: SeededRandom
  private var isCalm = false
  /// Everything that was ever in force.
  private(set) var records: [StoredRecord] = []

  init(seed: UInt64) { random = SeededRandom(seed) }

  /// Fails no more.
  func calm() { isCalm = true }

  func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await hesitate()
    return try await base.record(named: name)
  }

  func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try await hesitate()
    let outcome = try await base.replace(name, version: version, with: bytes, history: history)
    if case .replaced(let new) = outcome {
      records.append(StoredRecord(version: new, bytes: bytes))
    }
    // The answer is lost.
    try await hesitate()
    return outcome
  }

  func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await hesitate()
    return try await base.history(of: name, before: before, limit: limit)
  }

  nonisolated func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }

  func lead() -> (any StoreLeadership)? { LeadershipTerm() }

  func close() {}

  private func hesitate() async throws(StoreError) {
    guard !isCalm else { return }
    for _ in 0..<Int.random(in: 0...5, using: &random) { await Task.yield() }
    if Int.random(in: 0..<6, using: &random) == 0 {
      throw .unreachable(place: "nowhere", reason: "by chance")
    }
  }
}
