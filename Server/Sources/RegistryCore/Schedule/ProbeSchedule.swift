import SslPinningRules

/// Which endpoint is probed next, and when.
///
/// - At most ``Settings/limit`` probes run at once, and at most ``Settings/failingLimit`` of them at endpoints
///   that failed last time: a thousand endpoints that time out do not delay those that answer.
/// - The endpoint that has waited longest comes first, so none is passed over for ever. Quick repeats and
///   requested probes come before it; there are few of them.
/// - The first round starts at once, in random order and as fast as the limit allows. The second spreads out:
///   each endpoint is probed after a random part of its pause. From then on probes come up to a tenth of the
///   pause early and never late: the pause is a promise.
/// - The pause counts from the beginning of a probe, and so does the time to a quick repeat.
/// - An endpoint whose probes take long, as one with an address that does not answer, is probed so much sooner: a change is
///   confirmed within the same time as at others. One slow probe counts for a few more, because a silent vantage point is
///   not waited for each time.
/// - A failing endpoint keeps its pause: one that was down may come back with another key, which is to be published as soon as any
///   other.
///
/// Pure: values in, values out. Times are milliseconds of a clock that never jumps.
package struct ProbeSchedule: Sendable {
  /// Settings for all endpoints. Times are milliseconds.
  package struct Settings: Sendable, Hashable {
    /// The most probes at a time.
    package var limit: Int
    /// The most of them at endpoints that failed last time.
    package var failingLimit: Int
    /// How soon a probe is repeated while something waits for confirmation.
    package var confirmationInterval: Int64
    /// How many quick repeats confirm a change after the probe that meets it.
    package var confirmingRepeats: Int64
    /// How soon a probe is repeated while a key may be about to be withdrawn: fast enough that 30 probes fit
    /// into ten minutes.
    package var closeInterval: Int64 = 20_000
    /// The most quick repeats in a row; then the endpoint waits for its turn again.
    package var quickRepeats: Int

    package init(
      limit: Int = 256, failingLimit: Int? = nil, confirmationInterval: Int64 = 2000,
      confirmingRepeats: Int = 2, quickRepeats: Int = 11
    ) {
      self.limit = max(1, limit)
      self.failingLimit = max(1, failingLimit ?? limit / 4)
      self.confirmationInterval = confirmationInterval
      self.confirmingRepeats = Int64(confirmingRepeats)
      self.quickRepeats = quickRepeats
    }
  }

  /// The time for the last confirming probe that each pause leaves, in milliseconds.
  package static let probing: Int64 = 1000

  /// A running probe.
  package struct Turn: Sendable, Hashable {
    package let id: String
    /// Unique for each probe.
    package let number: UInt64
  }

  private struct Entry {
    var pause: Int64
    var isPaused: Bool
    var line = ProbeQueues.Line.usual
    /// Its current place in a line; nil while its probe runs, or nothing is planned.
    var ticket: UInt64?
    /// When the current or last probe began.
    var started: Int64?
    /// How long its probes take, in milliseconds, without those that failed. Of a slow one three quarters are left after the next.
    var taking: Int64 = 0
    /// The number of the running probe.
    var turn: UInt64?
    /// Whether the running probe counts towards `failingLimit`.
    var isCountedAsFailing = false
    /// Whether another probe was requested while one was running.
    var isAskedFor = false
    var probes = 0
    var isFailing = false
    var quickRepeats = 0
  }

  let settings: Settings
  private var random: any RandomNumberGenerator & Sendable
  private var entries: [String: Entry] = [:]
  private var lines = ProbeQueues()
  private var lastTicket: UInt64 = 0
  private var failingUnderWay = 0
  /// How many probes are running.
  package private(set) var underWay = 0
  /// How many probes have begun: the number of the last one.
  package private(set) var lastTurn: UInt64 = 0

  package init(
    _ settings: Settings,
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.settings = settings
    self.random = random
  }

  /// The ids of all known endpoints.
  package var ids: [String] { Array(entries.keys) }

  /// Adds an endpoint, due at once, or changes the settings of a known one.
  ///
  /// - Parameters:
  ///   - pause: milliseconds from the beginning of a probe to the next.
  ///   - isPaused: whether it is probed only on request.
  package mutating func set(_ id: String, pause: Int64, isPaused: Bool = false, at now: Int64) {
    guard let before = entries[id] else {
      entries[id] = Entry(pause: pause, isPaused: isPaused)
      if !isPaused { plan(id, .usual, at: now) }
      return
    }
    guard before.pause != pause || before.isPaused != isPaused else { return }
    entries[id]?.pause = pause
    entries[id]?.isPaused = isPaused
    // Leave a running or urgent probe alone; `finish` reschedules it.
    guard before.turn == nil, before.ticket == nil || before.line != .urgent else { return }
    if isPaused {
      entries[id]?.ticket = nil
    } else if before.isPaused || before.started == nil {
      plan(id, .usual, at: now)
    } else {
      planTurn(id, at: now)
    }
  }

  /// Forgets an endpoint. The result of a running probe will be ignored.
  package mutating func remove(_ id: String) {
    guard let entry = entries.removeValue(forKey: id), entry.turn != nil else { return }
    leave(entry)
  }

  /// Makes an endpoint due before all others, at once or after its running probe.
  package mutating func probeNow(_ id: String, at now: Int64) {
    guard let entry = entries[id] else { return }
    if entry.turn != nil { entries[id]?.isAskedFor = true } else { plan(id, .urgent, at: now) }
  }

  /// Takes the next endpoint that is due; its probe runs until ``finish(_:_:at:)``.
  package mutating func next(at now: Int64) -> Turn? {
    guard underWay < settings.limit, let place = takePlace(at: now) else { return nil }
    lastTurn += 1
    underWay += 1
    let isFailing = entries[place.id]?.isFailing == true
    if isFailing { failingUnderWay += 1 }
    entries[place.id]?.ticket = nil
    entries[place.id]?.started = now
    entries[place.id]?.turn = lastTurn
    entries[place.id]?.isCountedAsFailing = isFailing
    return Turn(id: place.id, number: lastTurn)
  }

  /// When ``next(at:)`` will have a result, unless something changes before; `nil` while the limit is
  /// reached or nothing is planned.
  package mutating func nextDue() -> Int64? {
    guard underWay < settings.limit else { return nil }
    dropStale()
    let failing = isOpenToFailing ? lines.failing.first : nil
    return [lines.urgent.first, lines.usual.first, failing].compactMap { $0?.due }.min()
  }

  /// Whether the result of this probe is still wanted.
  package func isUnderWay(_ turn: Turn) -> Bool { entries[turn.id]?.turn == turn.number }

  /// Enters the result of a probe.
  ///
  /// - Returns: whether nothing is left to confirm, so that the next probe is not a quick repeat.
  @discardableResult
  package mutating func finish(_ turn: Turn, _ outcome: NextProbe, at now: Int64) -> Bool {
    let id = turn.id
    guard var entry = entries[id], entry.turn == turn.number else { return true }
    leave(entry)
    entry.turn = nil
    entry.probes += 1
    let isQuick = outcome == .soon && entry.quickRepeats < settings.quickRepeats
    entry.quickRepeats = isQuick ? entry.quickRepeats + 1 : 0
    entry.isFailing = outcome == .failed
    if !entry.isFailing { entry.taking = max(now - (entry.started ?? now), entry.taking * 3 / 4) }
    let isAskedFor = entry.isAskedFor
    entry.isAskedFor = false
    entries[id] = entry
    if outcome == .never {
      entries[id] = nil
    } else if isAskedFor {
      plan(id, .urgent, at: now)
    } else if isQuick {
      plan(id, .urgent, at: max(now, (entry.started ?? now) + settings.confirmationInterval))
    } else if !entry.isPaused {
      planTurn(id, at: now, pause: outcome == .closely ? settings.closeInterval : .max)
    }
    return !isQuick
  }

  /// Gives up the running probes, and makes their endpoints due again.
  package mutating func abandon(at now: Int64) {
    for (id, entry) in entries where entry.turn != nil {
      leave(entry)
      entries[id]?.turn = nil
      if !entry.isPaused || entry.isAskedFor { plan(id, .usual, at: now) }
      entries[id]?.isAskedFor = false
    }
  }

  /// Plans the next probe after the pause, or after `longest` if that is shorter.
  private mutating func planTurn(_ id: String, at now: Int64, pause longest: Int64 = .max) {
    guard let entry = entries[id] else { return }
    let pause = Double(min(pause(of: entry), longest))
    let part = entry.probes < 2 && !entry.isFailing ? 0.02...1 : 0.9...1
    let wait = Int64(pause * Double.random(in: part, using: &random))
    plan(id, entry.isFailing ? .failing : .usual, at: max(now, (entry.started ?? now) + wait))
  }

  /// The pause, less what confirming takes longer than it leaves time for; at least half of it.
  private func pause(of entry: Entry) -> Int64 {
    let longer =
      settings.confirmingRepeats * max(0, entry.taking - settings.confirmationInterval)
      + max(0, entry.taking - Self.probing)
    return max(entry.pause / 2, entry.pause - longer)
  }

  private mutating func plan(_ id: String, _ line: ProbeQueues.Line, at due: Int64) {
    lastTicket += 1
    entries[id]?.ticket = lastTicket
    entries[id]?.line = line
    lines.insert(
      ProbeQueues.Place(due: due, order: random.next(), ticket: lastTicket, id: id), in: line)
    // Stale places are skipped when they come up; remove them here before there are too many.
    if lines.count > 2 * entries.count + 64 {
      lines.filter { [entries] in entries[$0.id]?.ticket == $0.ticket }
    }
  }

  private mutating func leave(_ entry: Entry) {
    underWay -= 1
    if entry.isCountedAsFailing { failingUnderWay -= 1 }
  }

  /// Takes the next place, if it is due.
  private mutating func takePlace(at now: Int64) -> ProbeQueues.Place? {
    dropStale()
    if let due = lines.urgent.first?.due, due <= now { return lines.urgent.popFirst() }
    let usual = lines.usual.first?.due ?? .max
    let failing = isOpenToFailing ? lines.failing.first?.due ?? .max : .max
    guard min(usual, failing) <= now else { return nil }
    return usual <= failing ? lines.usual.popFirst() : lines.failing.popFirst()
  }

  /// Whether another failing endpoint may be probed.
  private var isOpenToFailing: Bool { failingUnderWay < settings.failingLimit }

  /// Removes stale places from the heads of the lines.
  private mutating func dropStale() {
    lines.dropFirst { [entries] in entries[$0.id]?.ticket != $0.ticket }
  }
}

extension ProbeSchedule {
  /// How many places there are, stale ones included.
  var places: Int { lines.count }
}

/// When the decisions about an endpoint's keys want its next probe.
package enum NextProbe: Sendable, Hashable {
  /// After ``TLSConfiguration/confirmationInterval``: something waits for confirmation.
  case soon
  /// After ``ProbeSchedule/Settings/closeInterval``: a key may be about to be withdrawn.
  case closely
  /// After its normal interval.
  case onSchedule
  /// After its normal interval, behind those that answer: it did not.
  case failed
  /// Not again: it is no longer watched.
  case never
}

/// Takes in what probes of one endpoint show.
package protocol ProbeReceiver: Sendable {
  /// Enters one probe. On return, everything that it changed is published, or kept for the next attempt.
  func enter(_ probe: ProbeResult) async -> NextProbe
}

extension ProbeResult {
  /// Whether any place answered.
  package var isAnswered: Bool {
    observations.contains {
      if case .unreachable = $0.outcome { false } else { true }
    }
  }
}

/// The queues in which endpoints wait for their next probe.
struct ProbeQueues: Sendable {
  /// One of the queues.
  enum Line: Sendable {
    /// Before all others.
    case urgent
    case usual
    /// Endpoints that failed last time.
    case failing
  }

  /// An endpoint's place in a line.
  struct Place: Comparable, Sendable {
    let due: Int64
    /// Random, so that endpoints that are due at once come in no particular order.
    let order: UInt64
    /// Tells whether the place still counts: an endpoint has one current place, and maybe stale ones.
    let ticket: UInt64
    let id: String

    static func < (one: Place, other: Place) -> Bool {
      (one.due, one.order, one.ticket) < (other.due, other.order, other.ticket)
    }
  }

  var urgent = PriorityQueue<Place>()
  var usual = PriorityQueue<Place>()
  var failing = PriorityQueue<Place>()

  var count: Int { urgent.count + usual.count + failing.count }

  mutating func insert(_ place: Place, in line: Line) {
    switch line {
    case .urgent: urgent.insert(place)
    case .usual: usual.insert(place)
    case .failing: failing.insert(place)
    }
  }

  /// Keeps only the places for which `isIncluded` is true.
  mutating func filter(_ isIncluded: (Place) -> Bool) {
    urgent.filter(isIncluded)
    usual.filter(isIncluded)
    failing.filter(isIncluded)
  }

  /// Removes places from the head of each line while `isStale` is true.
  mutating func dropFirst(while isStale: (Place) -> Bool) {
    while let place = urgent.first, isStale(place) { _ = urgent.popFirst() }
    while let place = usual.first, isStale(place) { _ = usual.popFirst() }
    while let place = failing.first, isStale(place) { _ = failing.popFirst() }
  }
}
