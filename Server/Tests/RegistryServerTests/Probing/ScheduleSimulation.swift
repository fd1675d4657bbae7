import SslPinningRules
import TLSTools

@testable import RegistryCore
@testable import RegistryServer

/// A schedule that is worked off by a clock of numbers: endpoints that take so long and come to this.
struct ScheduleSimulation {
  /// How an endpoint behaves at a time: how long a probe takes, in milliseconds, and what comes of it.
  typealias Behaviour = (_ id: String, _ now: Int64) -> (Int64, NextProbe)

  private struct End: Comparable {
    let time: Int64
    let turn: ProbeSchedule.Turn
    let outcome: NextProbe

    static func < (one: End, other: End) -> Bool {
      (one.time, one.turn.number) < (other.time, other.turn.number)
    }
  }

  var schedule: ProbeSchedule
  private(set) var now: Int64 = 0
  /// When each endpoint's probes began.
  private(set) var starts: [String: [Int64]] = [:]
  /// All of them, in order.
  private(set) var order: [(time: Int64, id: String)] = []
  private(set) var mostUnderWay = 0
  private var ends = PriorityQueue<End>()
  private let behaviour: Behaviour

  init(
    _ settings: ProbeSchedule.Settings = ProbeSchedule.Settings(), seed: UInt64 = 1,
    _ behaviour: @escaping Behaviour = { _, _ in (0, .onSchedule) }
  ) {
    schedule = ProbeSchedule(settings, random: SeededRandom(seed))
    self.behaviour = behaviour
  }

  /// Lets everything happen that is due up to a time.
  mutating func run(until end: Int64) {
    while true {
      while let turn = schedule.next(at: now) {
        let (duration, outcome) = behaviour(turn.id, now)
        starts[turn.id, default: []].append(now)
        order.append((now, turn.id))
        ends.insert(End(time: now + duration, turn: turn, outcome: outcome))
        mostUnderWay = max(mostUnderWay, schedule.underWay)
      }
      let next = [ends.first?.time, schedule.nextDue()].compactMap { $0 }.min()
      guard let next, next <= end else { break }
      now = max(now, next)
      while let over = ends.first, over.time <= now {
        _ = ends.popFirst()
        schedule.finish(over.turn, over.outcome, at: now)
      }
    }
    now = max(now, end)
  }

  /// The times between an endpoint's probes.
  func gaps(_ id: String) -> [Int64] {
    let starts = starts[id] ?? []
    return zip(starts.dropFirst(), starts).map { $0 - $1 }
  }
}

/// The same numbers every time (SplitMix64).
struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
