import Synchronization

/// Bytes that all request bodies under way may take together.
final class BodyBudget: Sendable {
  private let limit: Int
  private let taken = Atomic(0)

  init(limit: Int) { self.limit = limit }

  /// Takes bytes; false, and takes none, where they are not left.
  func take(_ count: Int) -> Bool {
    if taken.wrappingAdd(count, ordering: .relaxed).newValue <= limit { return true }
    give(count)
    return false
  }

  func give(_ count: Int) { taken.wrappingSubtract(count, ordering: .relaxed) }

  /// Whether so many bytes are left at this moment.
  func has(_ count: Int) -> Bool { taken.load(ordering: .relaxed) + count <= limit }

  /// Bytes that are taken.
  var inUse: Int { taken.load(ordering: .relaxed) }
}
