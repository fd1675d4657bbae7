import Foundation

/// The order in which series are told: by the bytes of their labels.
///
/// Apart from the generic ``MetricFamily``, whose elements the compiler would move about with a call
/// each: that took ten times as long for the ten thousand series of a large page.
enum SeriesOrder {
  static func sorted(_ labels: [[UInt8]]) -> [[UInt8]] {
    labels.sorted { left, right in
      let order = left.withUnsafeBytes { one in
        right.withUnsafeBytes { other in
          guard let start = one.baseAddress, let otherStart = other.baseAddress else {
            return Int32(0)
          }
          return memcmp(start, otherStart, min(one.count, other.count))
        }
      }
      return order < 0 || order == 0 && left.count < right.count
    }
  }
}
