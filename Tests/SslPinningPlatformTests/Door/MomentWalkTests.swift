import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("A chain at several times")
struct MomentWalkTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let moments: [Int64]
    /// The fault at each time; none where it stands not here.
    var faults: [Int64?: ChainFault] = [:]
    let asked: [Int64?]
    let end: ChainFault?

    var testDescription: String { name }
  }

  static let late = ChainFault.outOfDate(code: 1, reason: "late", mayBeEarly: false)
  static let early = ChainFault.outOfDate(code: 2, reason: "early", mayBeEarly: true)
  static let rows = [
    Row(name: "the system's clock if no time is given", moments: [], asked: [nil], end: nil),
    Row(
      name: "the clock's fault is the last word", moments: [], faults: [nil: late], asked: [nil],
      end: late),
    Row(name: "the first time is enough", moments: [1, 2], asked: [1], end: nil),
    Row(
      name: "the second time serves where the first is out of date", moments: [1, 2],
      faults: [1: early], asked: [1, 2], end: nil),
    Row(
      name: "out of date at both, and early at one", moments: [1, 2], faults: [1: early, 2: late],
      asked: [1, 2], end: .outOfDate(code: 1, reason: "late", mayBeEarly: true)),
    Row(
      name: "late at both", moments: [1, 2], faults: [1: late, 2: late], asked: [1, 2], end: late),
    Row(
      name: "no other time makes another fault good", moments: [1, 2], faults: [1: .wrongHost],
      asked: [1], end: .wrongHost),
    Row(
      name: "a fault at the second time is the last word", moments: [1, 2],
      faults: [1: early, 2: .wrongHost], asked: [1, 2], end: .wrongHost),
  ]

  @Test("is evaluated until one time holds", arguments: rows)
  func blocking(row: Row) {
    var asked: [Int64?] = []
    let end = MomentWalk.fault(at: row.moments) { moment in
      asked.append(moment)
      return row.faults[moment]
    }
    #expect(end == row.end)
    #expect(asked == row.asked)
  }

  @Test("is evaluated so without blocking, too", arguments: rows)
  func waiting(row: Row) async {
    let asked = Locked<[Int64?]>([])
    let end = await MomentWalk.fault(at: row.moments) { moment async in
      await Task.yield()
      asked.withLock { $0.append(moment) }
      return row.faults[moment]
    }
    #expect(end == row.end)
    #expect(asked.withLock { $0 } == row.asked)
  }
}
