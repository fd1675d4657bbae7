/// What was seen of one store over many kills, and which of that is a fault.
struct KillLedger: Sendable, Equatable {
  /// One reading of the record, while a writer ran or after it was killed.
  struct Reading: Sendable, Equatable {
    /// 0 if there is no record.
    var version: Int64
    /// Whether record and history are exactly what was written as this version.
    var isWhole: Bool
  }

  /// How often a process was killed.
  private(set) var kills = 0
  /// How many changes were acknowledged to killed writers.
  private(set) var acknowledged: Int64 = 0
  /// Kills after which an acknowledged change was missing.
  private(set) var lost = 0
  /// Readings of something that nobody wrote.
  private(set) var torn = 0
  /// Readings of an older version after a newer one.
  private(set) var backwards = 0
  /// Kills after which more was written than had been begun.
  private(set) var unexplained = 0
  /// The newest version that was seen.
  private(set) var newest: Int64 = 0

  /// Enters a reader's reading; readings must come in order.
  mutating func enter(_ reading: Reading) {
    if !reading.isWhole { torn += 1 }
    if reading.version < newest { backwards += 1 }
    newest = max(newest, reading.version)
  }

  /// Enters a kill: what was acknowledged before, and what the store holds after it is opened again.
  ///
  /// - Parameters:
  ///   - lines: the acknowledged versions, in order.
  ///   - found: the version that the writer began with; `nil` if it was killed before it reported that.
  mutating func enter(acknowledged lines: [Int64], found: Int64?, reopened reading: Reading) {
    kills += 1
    acknowledged += Int64(lines.count)
    if let last = lines.last, reading.version < last { lost += 1 }
    // One change may have been in progress at the end; both outcomes are right.
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
