/// How many reports came in each hour, or each day: only those that had any, the oldest first.
struct ReportBuckets: Sendable, Equatable {
  struct Cell: Sendable, Equatable {
    /// When it begins, in Unix seconds; a multiple of the width.
    var start: Int64
    var count: Int64
  }

  /// Seconds in each.
  let width: Int64
  /// How many of them are kept, the one that is under way included.
  let most: Int64
  private(set) var cells: [Cell] = []

  init(width: Int64, most: Int64) {
    self.width = width
    self.most = most
  }

  /// The last two days by the hour.
  static let recentHours = ReportBuckets(width: 3600, most: 48)
  /// The last thirty days, by the hour or by the day.
  static let monthOfHours = ReportBuckets(width: 3600, most: 30 * 24)
  static let monthOfDays = ReportBuckets(width: 86_400, most: 30)

  /// When the bucket begins that a time falls into.
  func start(of time: Int64) -> Int64 {
    let rest = time % width
    return time - (rest < 0 ? rest + width : rest)
  }

  /// Counts reports at a time.
  mutating func add(_ count: Int64, at time: Int64) {
    add(Cell(start: start(of: time), count: count))
  }

  /// Adds another's counts, which are of the same width.
  mutating func merge(_ other: ReportBuckets) {
    for cell in other.cells { add(cell) }
  }

  private mutating func add(_ cell: Cell) {
    var place = cells.count
    while place > 0, cells[place - 1].start > cell.start { place -= 1 }
    if place > 0, cells[place - 1].start == cell.start {
      cells[place - 1].count = ReportCount.sum(cells[place - 1].count, cell.count)
    } else {
      cells.insert(cell, at: place)
    }
  }

  /// Drops what is too old.
  mutating func tidy(at now: Int64) {
    let first = start(of: now) - (most - 1) * width
    cells.removeAll { $0.start < first }
  }

  /// The oldest moment that is told, at this time.
  func reach(at now: Int64) -> Int64 { start(of: now) - (most - 1) * width }

  /// How many reports came in the buckets that lie, if only in part, within a time.
  func count(since: Int64, until: Int64) -> Int64 {
    cells.reduce(0) { sum, cell in
      let isWithin = cell.start < until && since - cell.start < width
      return isWithin ? ReportCount.sum(sum, cell.count) : sum
    }
  }
}

/// Sums of counts that strangers send.
enum ReportCount {
  /// Beyond it a count stays where it is; JSON says every smaller one exactly.
  static let most: Int64 = 1 << 50

  static func sum(_ left: Int64, _ right: Int64) -> Int64 { min(left + right, most) }
}
