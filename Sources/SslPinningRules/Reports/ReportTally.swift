/// How often something happened, and when: Unix seconds by the clock of the device.
package struct ReportTally: Hashable, Sendable {
  package var count: Int64
  package var first: Int64
  package var last: Int64

  package init(count: Int64, first: Int64, last: Int64) {
    self.count = count
    self.first = first
    self.last = last
  }

  /// Adds another's failures. A count that no JSON could say exactly stays where it is.
  package mutating func add(_ other: ReportTally) {
    count = min(count + other.count, 1 << 50)
    first = min(first, other.first)
    last = max(last, other.last)
  }
}
