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
