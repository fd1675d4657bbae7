/// What was seen of one store over many kills, and what of it must not be.
struct KillLedger: Sendable, Equatable {
  /// A reading of the record while a writer ran, or after it was killed.
  struct Reading: Sendable, Equatable {
    /// 0 where there is none.
    var version: Int64
    /// Whether the record and its history are what this version wrote.
    var isWhole: Bool
  }

  /// How often a process was killed.
  private(set) var kills = 0
  /// How many changes were acknowledged to those who were killed.
  private(set) var acknowledged: Int64 = 0
  /// Kills after which an acknowledged change was not there.
  private(set) var lost = 0
  /// Readings of what nobody wrote.
  private(set) var torn = 0
  /// Readings of an older version after a newer one.
  private(set) var backwards = 0
  /// Kills after which more had been written than was begun.
  private(set) var unexplained = 0
  /// The newest version that anybody saw.
  private(set) var newest: Int64 = 0

  /// Enters what a reader saw, in the order in which it did.
  mutating func enter(_ reading: Reading) {
    if !reading.isWhole { torn += 1 }
    if reading.version < newest { backwards += 1 }
    newest = max(newest, reading.version)
  }

  /// Enters a kill: what had been acknowledged by then, and what the store has when it is opened
  /// again.
  ///
  /// - Parameters:
  ///   - lines: the acknowledged versions, in their order.
  ///   - found: what the writer began with; `nil` where it was killed before it could say.
  mutating func enter(acknowledged lines: [Int64], found: Int64?, reopened reading: Reading) {
    kills += 1
    acknowledged += Int64(lines.count)
    if let last = lines.last, reading.version < last { lost += 1 }
    // Of a change that was under way at the end, nobody knows.
    let begun = (lines.last ?? found ?? newest) + 1
    if reading.version > max(begun, newest) { unexplained += 1 }
    enter(reading)
  }

  var isPassed: Bool {
    kills > 0 && acknowledged > 0 && lost + torn + backwards + unexplained == 0
  }

  /// What `drill kill` prints, after the name of the store.
  var line: String {
    let line =
      "\(kills) kills, \(acknowledged) acknowledged, \(lost) lost, \(torn) torn,"
      + " \(backwards) backwards"
    return unexplained == 0 ? line : line + ", \(unexplained) unexplained"
  }
}
