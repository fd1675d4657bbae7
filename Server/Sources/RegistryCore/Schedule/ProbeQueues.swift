import SslPinningRules

/// Where endpoints wait for their next probe.
struct ProbeQueues: Sendable {
  /// One of the lines.
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
    /// Random, so that those which are due at once come in no order of their own.
    let order: UInt64
    /// Tells whether it still counts: an endpoint has one place that does, and older ones.
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

  /// Keeps the places that `isIncluded` says.
  mutating func filter(_ isIncluded: (Place) -> Bool) {
    urgent.filter(isIncluded)
    usual.filter(isIncluded)
    failing.filter(isIncluded)
  }

  /// Takes the first places of each line out for as long as `isStale` says so.
  mutating func dropFirst(while isStale: (Place) -> Bool) {
    while let place = urgent.first, isStale(place) { _ = urgent.popFirst() }
    while let place = usual.first, isStale(place) { _ = usual.popFirst() }
    while let place = failing.first, isStale(place) { _ = failing.popFirst() }
  }
}
