/// What is to be told to one receiver, and in which order.
///
/// - A condition is told when it begins and when it is over, and in between only if apps come to be refused by it, or it comes
///   to be about more. What joins a mass change is told with it while it waits, and else ``joining`` seconds after it at the
///   earliest: endpoints that change one by one are no message each.
/// - In the order in which it happened: one delivery at a time, with all that waits, so that a burst is one delivery. If that
///   is too much for one, what apps are refused by goes first.
/// - At least once: what was not delivered is tried again, after ever longer pauses, with all that waits by then. Each
///   change is tried ``mostTries`` times, and then it is given up, and counted. Whoever receives can tell a repetition
///   by the id and ``ConditionChange/at``.
/// - A change that the receiver refuses stands before no other one, whoever chose its text: what is refused is divided until
///   it is alone, and then it is put off alone.
/// - A server that ceases to lead drops what it has not delivered of the leader's conditions. The next leader tells all
///   that stands. An old end, delivered after a new beginning, would hide it.
/// - Bounded: what begins waits only if there are fewer than ``capacity``, and is told later otherwise, if it still stands;
///   what apps are refused by takes the room of what they are not. An end always waits: there are no more of them than
///   beginnings that were told or wait. An end and the beginning that waits beside it cancel each other, unless apps were
///   refused.
package struct NotificationQueue: Sendable {
  /// With how many nothing more begins to wait.
  static let capacity = 1000
  /// How many one delivery has at most, and how many bytes of text: many servers take no larger body than a megabyte.
  static let mostAtOnce = 100
  static let mostBytes = 256 << 10
  /// How often a change is tried: for some nine hours.
  package static let mostTries = 60
  /// Milliseconds between the first two tries; doubled each time, up to ``longestPause``.
  static let firstPause: Int64 = 1000
  static let longestPause: Int64 = 600_000
  /// The same after a refusal: what waits beside the change that was refused need not wait for it.
  static let longestAfterRefusal: Int64 = 30_000
  /// For how many identities the last change is remembered if nothing of them holds.
  static let mostRemembered = 8000
  /// Seconds from one telling of a mass change to the next that lists more.
  static let joining: Int64 = 10

  /// A change that waits.
  private struct Entry {
    var change: ConditionChange
    let identity: String
    var tries = 0
    /// Until when it waits because the receiver refused it alone; `nil` if it never did.
    var putOff: Int64?

    init(_ phase: ConditionChange.Phase, _ condition: Condition, _ identity: String, at now: Int64)
    {
      (change, self.identity) = (ConditionChange(phase, condition, at: now), identity)
    }

    var isCritical: Bool { change.phase == .begun && change.condition.isRefusing }
  }

  /// In the order in which they came, without those under way.
  private var waiting: [Entry] = []
  /// Those that are being delivered.
  private var underWay: [Entry] = []
  /// Deliveries in a row that failed.
  private var failures = 0
  /// Not before, in milliseconds of a clock that is never set.
  private var due: Int64 = .min
  /// Those under way that are not tried again: another server tells them.
  private var left: Set<ConditionChange> = []
  /// What was told, or waits to be, as begun and not over, by its identity.
  private var open: [String: Condition] = [:]
  /// Of those, the ones that the receiver may have heard of.
  private var heard: Set<String> = []
  /// When each of those that hold began to wait last, in Unix seconds.
  private var told: [String: Int64] = [:]
  /// ``ConditionChange/at`` of the last change of each identity.
  private var last: [String: Int64] = [:]
  /// How many are delivered at a time: fewer after a delivery that was refused.
  private var batch = mostAtOnce
  /// How many were given up, for want of room or after all tries.
  package private(set) var lost = 0

  /// Nothing was told.
  package init() {}

  /// How many wait, those under way included.
  package var count: Int { waiting.count + underWay.count }

  /// Takes down what holds now.
  ///
  /// - Parameters:
  ///   - conditions: all that do.
  ///   - now: Unix seconds.
  package mutating func observe(_ conditions: [Condition], at now: Int64) {
    let current = Dictionary(conditions.map { ($0.identity, $0) }) { first, _ in first }
    told = told.filter { current[$0.key] != nil }
    for identity in open.keys.filter({ current[$0] == nil }).sorted() {
      guard let condition = open.removeValue(forKey: identity) else { continue }
      let isHeard = heard.remove(identity) != nil
      if !isHeard, !condition.isRefusing, withdraw(identity) { continue }
      waiting.append(Entry(.over, condition, identity, at: time(of: identity, now)))
    }
    withdrawEnds(of: current)
    var new: [(identity: String, condition: Condition)] = []
    for (identity, condition) in current {
      if let known = open[identity], condition.isTold(by: known) {
        open[identity] = condition
      } else if !isJoined(condition, identity, at: now) {
        new.append((identity, condition))
      }
    }
    begin(
      new.sorted {
        ($0.condition.isRefusing ? 0 : 1, $0.identity) < (
          $1.condition.isRefusing ? 0 : 1, $1.identity
        )
      }, at: now)
  }

  /// Has new ones wait that have room, of those by which apps are refused first.
  private mutating func begin(_ new: [(identity: String, condition: Condition)], at now: Int64) {
    var yielding: [Int]?
    var putOff: Set<Int> = []
    for (identity, condition) in new {
      if count - putOff.count >= Self.capacity {
        // Without room it is as if it had not been seen: the next look finds it again, and all behind it.
        guard condition.isRefusing, let place = makeRoom(among: &yielding) else { break }
        putOff.insert(place)
      }
      open[identity] = condition
      told[identity] = now
      waiting.append(Entry(.begun, condition, identity, at: time(of: identity, now)))
    }
    remove(putOff)
  }

  /// Whether what is about more than before is told with the beginning that waits, or waits itself for ``joining`` seconds.
  private mutating func isJoined(_ condition: Condition, _ identity: String, at now: Int64) -> Bool
  {
    guard open[identity] != nil, !condition.listed.isEmpty else { return false }
    guard
      let place = waiting.lastIndex(where: { $0.change.phase == .begun && $0.identity == identity })
    else { return told[identity].map { 0..<Self.joining ~= now - $0 } ?? false }
    open[identity] = condition
    told[identity] = now
    waiting[place].change = ConditionChange(.begun, condition, at: time(of: identity, now))
    return true
  }

  /// When a change was seen, later than the one before it: of an id the newest counts for whoever receives, and a clock is set back.
  private mutating func time(of identity: String, _ now: Int64) -> Int64 {
    if last.count > Self.mostRemembered { last = last.filter { open[$0.key] != nil } }
    let time = last[identity].map { max(now, $0 + 1) } ?? now
    last[identity] = time
    return time
  }

  /// Forgets what was told, without telling that it is over, and what waits: another server tells it from now on.
  package mutating func forget(where isTheirs: (Condition) -> Bool) {
    open = open.filter { !isTheirs($0.value) }
    heard.formIntersection(open.keys)
    left.formUnion(underWay.map(\.change).filter { isTheirs($0.condition) })
    waiting.removeAll { isTheirs($0.change.condition) }
  }

  /// Takes back what waits of a condition that nobody heard of; not if apps were refused by it. An end of before stays: the
  /// receiver heard of that beginning.
  private mutating func withdraw(_ identity: String) -> Bool {
    let all = waiting.indices.filter { waiting[$0].identity == identity }
    let own = all.drop { index in
      all.contains { $0 >= index && waiting[$0].change.phase == .over }
    }
    guard !own.contains(where: { waiting[$0].change.condition.isRefusing }) else { return false }
    for index in own.reversed() { waiting.remove(at: index) }
    return true
  }

  /// Takes back that something is over that is there again, if nobody heard that: then it goes on.
  private mutating func withdrawEnds(of current: [String: Condition]) {
    for index in waiting.indices.reversed() {
      let entry = waiting[index]
      guard entry.change.phase == .over, entry.tries == 0, !entry.change.condition.isRefusing,
        current[entry.identity] != nil, open[entry.identity] == nil
      else { continue }
      open[entry.identity] = entry.change.condition
      heard.insert(entry.identity)
      waiting.remove(at: index)
    }
  }

  /// Puts off the newest beginning by which no apps are refused.
  ///
  /// - Parameter yielding: the places of beginnings, found once in a look: searched for each of thousands that have no
  ///   room, they would take a processor.
  /// - Returns: its place; `nil` if there is none.
  private mutating func makeRoom(among yielding: inout [Int]?) -> Int? {
    var places = yielding ?? waiting.indices.filter { waiting[$0].change.phase == .begun }
    defer { yielding = places }
    while let last = places.popLast() {
      // Not if it is over by now, or has come to refuse: its second change would stand alone.
      // Nor if the receiver may have heard of it: it would not hear of the end.
      let identity = waiting[last].identity
      guard open[identity]?.isRefusing == false, !heard.contains(identity) else { continue }
      open[identity] = nil
      return last
    }
    return nil
  }

  private mutating func remove(_ places: Set<Int>) {
    guard !places.isEmpty else { return }
    waiting = waiting.indices.filter { !places.contains($0) }.map { waiting[$0] }
  }

  /// What is to be delivered now; empty if nothing is, or a delivery is under way. Otherwise
  /// ``finished(isDelivered:refusal:retryAfter:ticks:)`` says how it went.
  package mutating func take(ticks: Int64) -> [ConditionChange] {
    guard underWay.isEmpty, due <= ticks else { return [] }
    let next = next(at: ticks)
    for index in next {
      waiting[index].tries += 1
      heard.insert(waiting[index].identity)
      underWay.append(waiting[index])
    }
    heard.formIntersection(open.keys)
    remove(Set(next))
    return underWay.map(\.change)
  }

  /// The places of what goes next. What was refused alone goes alone, and after all others.
  private func next(at ticks: Int64) -> [Int] {
    let fresh = waiting.indices.filter { waiting[$0].putOff == nil }
    let ready =
      fresh.isEmpty ? waiting.indices.filter { (waiting[$0].putOff ?? 0) <= ticks } : fresh
    let ordered =
      ready.filter { waiting[$0].isCritical } + ready.filter { !waiting[$0].isCritical }
    var bytes = 0
    let fitting = ordered.prefix(fresh.isEmpty ? 1 : batch).prefix {
      bytes += waiting[$0].change.condition.message.utf8.count
      return bytes <= Self.mostBytes
    }
    return ordered.prefix(max(1, fitting.count)).sorted()
  }

  /// What was taken is delivered, or could not be.
  ///
  /// - Parameters:
  ///   - refusal: what the receiver does not take, if it answered.
  ///   - retryAfter: seconds that the receiver wants to be left alone for.
  package mutating func finished(
    isDelivered: Bool, refusal: DeliveryRefusal? = nil, retryAfter: Int64? = nil, ticks: Int64
  ) {
    let tried = underWay.filter { !left.contains($0.change) }
    let (isAlone, wasPutOff) = (underWay.count == 1, underWay.contains { $0.putOff != nil })
    if refusal != nil, !isAlone { batch = underWay.count / 2 }
    (underWay, left) = ([], [])
    if isDelivered {
      (failures, due) = (0, .min)
      batch = min(Self.mostAtOnce, batch * 2)
      // It takes what it refused, so it may take all else.
      if wasPutOff { for index in waiting.indices { waiting[index].putOff = nil } }
    } else if refusal == .tooLarge {
      // Alone, it will never be smaller, and keeps all others waiting.
      if isAlone { lost += tried.count } else { waiting = tried + waiting }
    } else {
      failures += 1
      // Whatever a receiver asks for: no number that it thinks of ends this process.
      let asked = min(max(0, retryAfter ?? 0), Self.longestPause / 1000) * 1000
      let longest = refusal == nil ? Self.longestPause : Self.longestAfterRefusal
      due = ticks + max(min(Self.pause(after: failures), longest), asked)
      // Not those that came later: each of them has its own tries. Nor those that were refused for one among them.
      var kept = tried.filter { $0.tries < Self.mostTries || refusal != nil && !isAlone }
      lost += tried.count - kept.count
      if refusal != nil, isAlone, let entry = kept.first {
        kept[0].putOff = ticks + Self.pause(after: entry.tries)
      }
      waiting = kept + waiting
      if waiting.isEmpty { (failures, due) = (0, .min) }
    }
  }

  private static func pause(after failures: Int) -> Int64 {
    min(firstPause << Int64(min(failures - 1, 20)), longestPause)
  }
}

/// What a receiver that answered does not take.
package enum DeliveryRefusal: Sendable {
  /// As much at a time.
  case tooLarge
  /// What the message says, as far as anybody here knows: it may take another one.
  case content
}

/// That a condition begins, or is over.
package struct ConditionChange: Sendable, Hashable {
  package enum Phase: String, Sendable {
    case begun
    case over
  }

  package var phase: Phase
  package var condition: Condition
  /// When that was seen, in Unix seconds; later than that of the change before it, whatever the clock does.
  package var at: Int64

  package init(_ phase: Phase, _ condition: Condition, at: Int64) {
    (self.phase, self.condition, self.at) = (phase, condition, at)
  }
}
