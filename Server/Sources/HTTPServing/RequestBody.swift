import SslPinningPlatform
import Synchronization

/// Collects a request's body, up to its limit and to what all bodies together may take.
struct RequestBody {
  private(set) var bytes: [UInt8] = []
  private(set) var fault: Fault?
  private var limit = 0
  private var budget: BodyBudget?
  private var reserved = 0
  private var dropped = 0

  enum Fault {
    case tooLarge
    /// All bodies together take too much.
    case overloaded
    /// It goes on and on.
    case endless
  }

  /// How much of a body that is refused anyway is read, so that its sender gets to see the refusal.
  private static let patience = 1 << 20

  mutating func begin(limit: Int, budget: BodyBudget) {
    self.limit = limit
    self.budget = budget
  }

  mutating func append(_ part: UnsafeRawBufferPointer) {
    if fault == nil {
      if bytes.count + part.count > limit {
        fault = .tooLarge
      } else if budget?.take(part.count) == false {
        fault = .overloaded
      } else {
        reserved += part.count
        bytes.append(contentsOf: part)
        return
      }
      bytes = []
    }
    dropped += part.count
    if dropped > Self.patience { fault = .endless }
  }

  /// Hands the bytes over. They count until ``end()``.
  mutating func take() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  mutating func end() {
    guard let budget else { return }
    budget.give(reserved)
    self = RequestBody()
  }
}

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

/// The budgets of those who have shown a token, each its own: what one of them sends takes nothing from another, or a
/// token for little would keep those who decide from it.
final class TrustedBodies: Sendable {
  private let limit: Int
  private let budgets = Locked<[String: BodyBudget]>([:])
  /// From so many on, those that nothing is taken of are forgotten: tools make a token for each call.
  private static let many = 64

  init(limit: Int) { self.limit = limit }

  func budget(of name: String) -> BodyBudget {
    budgets.withLock { budgets in
      if let known = budgets[name] { return known }
      if budgets.count >= Self.many { budgets = budgets.filter { $0.value.inUse > 0 } }
      let budget = BodyBudget(limit: limit)
      budgets[name] = budget
      return budget
    }
  }

  /// Bytes that are taken.
  var inUse: Int { budgets.withLock { $0.values.reduce(0) { $0 + $1.inUse } } }
}
