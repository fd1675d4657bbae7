import SslPinningRules

/// What the documents of one server deny together: a denial counts in all of them, whichever of them was kept or
/// believed when somebody made it.
///
/// - Of a denial and an end of it the later one counts; of the same second the end.
/// - What a document denied or allowed once is remembered as long as the server runs.
package struct SharedDenials: Sendable {
  private var denied: [SPKIPin: DocumentState.Denial] = [:]
  private var allowed: [SPKIPin: Int64] = [:]

  /// None.
  package init() {}

  /// Adds what a document has.
  package mutating func enter(_ state: DocumentState) {
    for denial in state.denied where denial.at > denied[denial.pin]?.at ?? .min {
      denied[denial.pin] = denial
    }
    allowed.merge(state.allowed, uniquingKeysWith: max)
  }

  /// The denials in force, the oldest first.
  package var inForce: [DocumentState.Denial] {
    denied.values.filter { $0.at > allowed[$0.pin] ?? .min }
      .sorted { ($0.at, $0.pin) < ($1.at, $1.pin) }
  }
}
