import SslPinningRules

/// How what two records say of denied keys is united.
///
/// Of each key the last decision counts, whichever record has it: to deny it, or to allow it again. So no record ends
/// a denial by not having it, be it an older one, a restored one or another server's. Decisions at one server follow
/// one another in time also where its clock was set back; an allowance in the second of its denial came after it.
extension DocumentState {
  /// What people decided about a key last; `nil` if they never did.
  private func lastDecision(about pin: SPKIPin) -> (at: Int64, denial: Denial?)? {
    if let denial = denied.last(where: { $0.pin == pin }) { return (denial.at, denial) }
    return allowed[pin].map { ($0, nil) }
  }

  /// Takes over later decisions of another record.
  ///
  /// - Returns: whether there was any.
  @discardableResult
  package mutating func uniteDenials(with other: DocumentState) -> Bool {
    var isChanged = false
    for pin in other.deniedPins.union(other.allowed.keys).sorted() {
      guard let theirs = other.lastDecision(about: pin) else { continue }
      if let own = lastDecision(about: pin) {
        guard (own.at, own.denial == nil ? 1 : 0) < (theirs.at, theirs.denial == nil ? 1 : 0) else {
          continue
        }
      }
      isChanged = true
      denied.removeAll { $0.pin == pin }
      allowed[pin] = theirs.denial == nil ? theirs.at : nil
      guard let denial = theirs.denial else { continue }
      denied.append(denial)
      forgetCandidate(pin)
    }
    return isChanged
  }
}

/// What the documents of one server deny together: a denial counts in all of them, whichever of them was kept or
/// believed when somebody made it.
///
/// - Of a denial and an end of it the later one counts; of the same second the end.
/// - What a document denied or allowed once is remembered as long as the server runs.
package struct SharedDenials: Sendable {
  private var denied: [SPKIPin: DocumentState.Denial] = [:]
  private(set) var allowed: [SPKIPin: Int64] = [:]

  /// None.
  package init() {}

  /// Adds what a document has.
  package mutating func enter(_ state: DocumentState) {
    for denial in state.denied where denial.at > denied[denial.pin]?.at ?? .min {
      denied[denial.pin] = denial
    }
    allowed.merge(state.allowed, uniquingKeysWith: max)
  }

  /// When a person ended this denial, in whichever document; `nil` if nobody did.
  func end(of denial: DocumentState.Denial) -> Int64? {
    allowed[denial.pin].flatMap { denial.at <= $0 ? $0 : nil }
  }

  /// The denials in force, the oldest first.
  package var inForce: [DocumentState.Denial] {
    denied.values.filter { $0.at > allowed[$0.pin] ?? .min }
      .sorted { ($0.at, $0.pin) < ($1.at, $1.pin) }
  }
}

extension DocumentState.Denial {
  /// Whether a request made it, here or in the document that shared it, also if it was decided again since.
  package func isMade(by request: DocumentState.Request) -> Bool {
    (by, why) == (request.who, request.why) && at >= request.at
  }
}
