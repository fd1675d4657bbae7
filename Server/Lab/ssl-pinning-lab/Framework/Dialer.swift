import Foundation

/// One way in which an app sends a request.
struct Dialer: Sendable {
  /// How a request ended.
  enum Answer: Sendable, Equatable {
    /// The body of the answer.
    case served(String)
    /// A verdict against it, and the rule that decided.
    case refused(rule: String, String)
    /// It failed for another reason.
    case failed(String)
  }

  let name: String
  let dial: @Sendable (URL) async -> Answer
}
