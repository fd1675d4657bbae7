import RegistryCore
import RegistryStores

/// Forgets what a document's history has beyond `history.keep` and `history.keep_for`, the newest entry never.
///
/// Nothing is decided by a history: denials, staged keys and all else that is in force are in the record.
struct HistoryRetention: Sendable {
  /// Seconds between two times.
  static let interval: Int64 = 3600

  let limits: HistoryConfiguration
  let store: any RegistryStore

  /// Forgets what is due.
  ///
  /// - Parameter now: Unix time in seconds.
  func tidy(_ name: String, at now: Int64) async throws(StoreError) {
    guard let newest = try await store.history(of: name, before: nil, limit: 1).first?.number else {
      return
    }
    var last = Self.surplus(beside: newest, keeping: limits.entries)
    if limits.age > 0 {
      last = try await lastOlder(than: now - limits.age / 1000, of: name, from: last, newest)
    }
    // Nothing is written where it is gone already.
    guard last > 0, try await entry(last, of: name) != nil else { return }
    try await store.forgetHistory(of: name, through: last)
  }

  /// The number of the last entry that is beyond so many; 0 if none is. Also where no server gave the newest one its number:
  /// whoever can write to the store must not end the server by it.
  static func surplus(beside newest: Int64, keeping entries: Int) -> Int64 {
    entries > 0 && newest > 0 ? newest - Int64(entries) : 0
  }

  /// The number of the last entry from before a time, found by halving: of a clock that was set, a few may be
  /// kept too long.
  private func lastOlder(
    than time: Int64, of name: String, from first: Int64, _ newest: Int64
  ) async throws(StoreError) -> Int64 {
    var (older, kept) = (max(0, first), newest)
    while older + 1 < kept {
      let middle = older + (kept - older) / 2
      if let entry = try await entry(middle, of: name), isKept(entry, since: time) {
        kept = middle
      } else {
        older = middle
      }
    }
    return older
  }

  private func isKept(_ entry: StoredEntry, since time: Int64) -> Bool {
    // One that cannot be read counts as young.
    HistoryEntry.read([entry]).first.map { $0.time >= time } ?? true
  }

  private func entry(_ number: Int64, of name: String) async throws(StoreError) -> StoredEntry? {
    let found = try await store.history(of: name, before: number + 1, limit: 1).first
    return found?.number == number ? found : nil
  }
}
