/// What is to be appended to a document's history with its next write.
///
/// - After a write that failed nobody knows whether it was made. Before the same entries are written
///   again, those that the store has by now are taken out. Of one that is under way nobody knows either:
///   what is in force may be just that.
/// - What another server, watching in between, found out and wrote itself is not told twice.
///
/// Pure: values in, values out.
struct PendingHistory: Sendable, Equatable {
  /// In the order in which they are appended.
  private(set) var entries: [HistoryEntry] = []
  /// Whether a write failed that may have been made.
  private var hasFailed = false
  /// Whether a write is under way that may be made.
  private var isUnderWay = false

  /// Whether the store may have some of them.
  var isUnsure: Bool { hasFailed || isUnderWay }

  /// What stood in the store when this server began to lead.
  private var told: Set<HistoryEntry> = []

  /// How far the clocks of servers may be apart, in seconds, for an entry to be found.
  private static let clockSkew: Int64 = 3600

  /// Adds an entry, unless it is one that the last leader told in the same words: both may meet a key in
  /// the same second, and what waits for more probes is in no record that the second could know it from.
  mutating func append(_ entry: HistoryEntry) {
    if !told.contains(entry) { entries.append(entry) }
  }

  /// This server leads from now on.
  mutating func lead(after stored: [HistoryEntry]) { told = Set(stored) }

  /// A write begins. Exactly one of the next three follows.
  mutating func begin() { isUnderWay = true }

  /// It was made, with these of the entries.
  mutating func written(_ written: [HistoryEntry]) {
    // It named the version that one which failed named too: that one will not be made any more.
    (hasFailed, isUnderWay) = (false, false)
    remove(written)
  }

  /// It was not made: another version is in force than it named. One that failed before it may be that
  /// version.
  mutating func refused() { isUnderWay = false }

  /// It failed, or its answer was lost. Where another version was found in force meanwhile, it is known
  /// what became of it.
  mutating func failed() {
    hasFailed = hasFailed || isUnderWay
    isUnderWay = false
  }

  /// Another version is in force than the last writes named: they are in `stored`, or will never be.
  ///
  /// - Parameters:
  ///   - stored: the newest entries of the store; asked for where ``isUnsure``.
  ///   - theirs: the state in force.
  ///   - base: the last that was known to be stored.
  mutating func reconcile(
    with stored: [HistoryEntry], theirs: DocumentState, base: DocumentState
  ) {
    (hasFailed, isUnderWay) = (false, false)
    remove(stored)
    entries.removeAll { $0.isTold(by: theirs, since: base) }
  }

  /// An entry of the store from before this time is too old for it or any before it to be one of these.
  var horizon: Int64 { entries.map(\.time).min().map { $0 - Self.clockSkew } ?? .max }

  /// Whether an entry of the store is too old for it or any before it to be one of these.
  func isBehind(_ entry: HistoryEntry) -> Bool { entry.time < horizon }

  /// By what they say, not by their number: some may be gone already.
  private mutating func remove(_ others: [HistoryEntry]) {
    var counts: [HistoryEntry: Int] = [:]
    for entry in others { counts[entry, default: 0] += 1 }
    entries.removeAll { entry in
      guard let count = counts[entry], count > 0 else { return false }
      counts[entry] = count - 1
      return true
    }
  }
}
