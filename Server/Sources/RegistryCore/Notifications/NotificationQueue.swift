/// What is to be told to one receiver, and in which order.
///
/// - A condition is told when it begins and when it is over, and in between only if apps come to be refused by it, or it comes
///   to be about more. What joins a mass change is told with it while it waits, and else ``joining`` seconds after it at the
///   earliest: endpoints that change one by one are no message each.
/// - In the order in which it happened: one delivery at a time, with all that waits, so that a burst is one delivery.
/// - At least once: what was not delivered is tried again, after ever longer pauses, with all that waits by then. Each
///   change is tried ``mostTries`` times, and then it is given up, and counted. Whoever receives can tell a repetition
///   by the id and ``ConditionChange/at``.
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
  /// Seconds from one telling of a mass change to the next that lists more.
  static let joining: Int64 = 10

  /// In the order in which they came, each with how often it was tried.
  private var waiting: [(change: ConditionChange, tries: Int)] = []
  /// How many of those are being delivered; they are the first.
  private var underWay = 0
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
  /// How many are delivered at a time: fewer after a delivery that was too large.
  private var batch = mostAtOnce
  /// How many were given up, for want of room or after all tries.
  package private(set) var lost = 0

  /// Nothing was told.
  package init() {}

  /// How many wait, those under way included.
  package var count: Int { waiting.count }

  /// Takes down what holds now.
  ///
  /// - Parameters:
  ///   - conditions: all that do.
  ///   - now: Unix seconds.
  package mutating func observe(_ conditions: [Condition], at now: Int64) {
    let current = Dictionary(conditions.map { ($0.identity, $0) }) { first, _ in first }
    told = told.filter { current[$0.key] != nil }
    for (identity, condition) in open.sorted(by: { $0.key < $1.key }) where current[identity] == nil
    {
      open[identity] = nil
      let isHeard = heard.remove(identity) != nil
      if !isHeard, !condition.isRefusing, withdraw(identity) { continue }
      waiting.append((ConditionChange(.over, condition, at: now), tries: 0))
    }
    for (identity, condition) in current.sorted(by: { $0.key < $1.key }) {
      if open[identity] == nil, let end = withdrawEnd(of: identity) {
        open[identity] = end
        heard.insert(identity)
      }
      let isTold = open[identity].map { condition.isTold(by: $0) } ?? false
      if !isTold, open[identity] != nil, !condition.listed.isEmpty {
        if let place = waitingBeginning(of: identity) {
          open[identity] = condition
          told[identity] = now
          waiting[place].change = ConditionChange(.begun, condition, at: now)
          continue
        }
        if let last = told[identity], 0..<Self.joining ~= now - last { continue }
      }
      let hasRoom = waiting.count < Self.capacity
      // Without room it is as if it had not been seen: the next look finds it again.
      guard isTold || hasRoom || condition.isRefusing && makeRoom() else { continue }
      open[identity] = condition
      guard !isTold else { continue }
      told[identity] = now
      waiting.append((ConditionChange(.begun, condition, at: now), tries: 0))
    }
  }

  /// Forgets what was told, without telling that it is over, and what waits: another server tells it from now on.
  package mutating func forget(where isTheirs: (Condition) -> Bool) {
    open = open.filter { !isTheirs($0.value) }
    heard.formIntersection(open.keys)
    let delivering = waiting.prefix(underWay)
    left.formUnion(delivering.map(\.change).filter { isTheirs($0.condition) })
    waiting =
      Array(delivering) + waiting.dropFirst(underWay).filter { !isTheirs($0.change.condition) }
  }

  /// Takes back what waits of a condition that nobody heard of; not if apps were refused by it. An end of before stays: the
  /// receiver heard of that beginning.
  private mutating func withdraw(_ identity: String) -> Bool {
    let all = waiting.indices.dropFirst(underWay).filter {
      waiting[$0].change.condition.identity == identity
    }
    let own = all.drop { index in
      all.contains { $0 >= index && waiting[$0].change.phase == .over }
    }
    guard !own.contains(where: { waiting[$0].change.condition.isRefusing }) else { return false }
    for index in own.reversed() { waiting.remove(at: index) }
    return true
  }

  /// Where the last beginning of a condition waits that is not under way.
  private func waitingBeginning(of identity: String) -> Int? {
    waiting.indices.dropFirst(underWay).last {
      waiting[$0].change.phase == .begun && waiting[$0].change.condition.identity == identity
    }
  }

  /// Takes back that something is over, if nobody heard that: then it goes on.
  private mutating func withdrawEnd(of identity: String) -> Condition? {
    let end = waiting.indices.dropFirst(underWay).last {
      let (change, tries) = waiting[$0]
      return change.phase == .over && tries == 0 && !change.condition.isRefusing
        && change.condition.identity == identity
    }
    return end.map { waiting.remove(at: $0).change.condition }
  }

  /// Has room for one more; puts off the newest beginning by which no apps are refused, if need be.
  ///
  /// - Returns: false if there is none to put off.
  private mutating func makeRoom() -> Bool {
    guard waiting.count >= Self.capacity else { return true }
    let last = waiting.indices.dropFirst(underWay).last {
      // Not if it is over by now, or has come to refuse: its second change would stand alone.
      // Nor if the receiver heard of it: it would not hear of the end.
      let (change, identity) = (waiting[$0].change, waiting[$0].change.condition.identity)
      return change.phase == .begun && open[identity]?.isRefusing == false
        && !heard.contains(identity)
    }
    guard let last else { return false }
    open[waiting.remove(at: last).change.condition.identity] = nil
    return true
  }

  /// Takes back what another server tells.
  private mutating func withdrawLeft() {
    let tried = waiting.prefix(underWay).filter { !left.contains($0.change) }
    waiting.replaceSubrange(..<underWay, with: tried)
  }

  /// What is to be delivered now; empty if nothing is, or a delivery is under way. Otherwise
  /// ``finished(isDelivered:retryAfter:ticks:)`` says how it went.
  package mutating func take(ticks: Int64) -> [ConditionChange] {
    guard underWay == 0, due <= ticks, !waiting.isEmpty else { return [] }
    var bytes = 0
    underWay =
      waiting.prefix(batch).firstIndex {
        bytes += $0.change.condition.message.utf8.count
        return bytes > Self.mostBytes
      } ?? min(waiting.count, batch)
    underWay = max(1, underWay)
    for index in 0..<underWay {
      waiting[index].tries += 1
      heard.insert(waiting[index].change.condition.identity)
    }
    heard.formIntersection(open.keys)
    return waiting.prefix(underWay).map(\.change)
  }

  /// What was taken is delivered, or could not be.
  ///
  /// - Parameters:
  ///   - isTooLarge: whether the receiver takes less at a time.
  ///   - retryAfter: seconds that the receiver wants to be left alone for.
  package mutating func finished(
    isDelivered: Bool, isTooLarge: Bool = false, retryAfter: Int64? = nil, ticks: Int64
  ) {
    if isDelivered {
      waiting.removeFirst(underWay)
      (failures, due) = (0, .min)
      batch = min(Self.mostAtOnce, batch * 2)
    } else if isTooLarge, underWay > 1 {
      batch = underWay / 2
      withdrawLeft()
    } else if isTooLarge {
      // It will never be smaller, and keeps all others waiting.
      lost += left.isEmpty ? 1 : 0
      waiting.removeFirst()
    } else {
      failures += 1
      // Whatever a receiver asks for: no number that it thinks of ends this process.
      let asked = min(max(0, retryAfter ?? 0), Self.longestPause / 1000) * 1000
      let pause = max(Self.firstPause << Int64(min(failures - 1, 20)), asked)
      due = ticks + min(pause, Self.longestPause)
      let tried = waiting.prefix(underWay).filter { !left.contains($0.change) }
      // Not those that came later: each of them has its own tries.
      let kept = tried.filter { $0.tries < Self.mostTries }
      lost += tried.count - kept.count
      waiting.replaceSubrange(..<underWay, with: kept)
      if waiting.isEmpty { (failures, due) = (0, .min) }
    }
    underWay = 0
    left = []
  }
}

/// That a condition begins, or is over.
package struct ConditionChange: Sendable, Hashable {
  package enum Phase: String, Sendable {
    case begun
    case over
  }

  package var phase: Phase
  package var condition: Condition
  /// When that was seen, in Unix seconds.
  package var at: Int64

  package init(_ phase: Phase, _ condition: Condition, at: Int64) {
    (self.phase, self.condition, self.at) = (phase, condition, at)
  }
}
