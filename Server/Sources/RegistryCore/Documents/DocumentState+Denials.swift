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
