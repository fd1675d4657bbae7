/// What a server may make of its clock when it signs: the time of signing is the time that devices with
/// wrong clocks go by. All times are Unix seconds. Pure.
///
/// - A document is signed again after a day; and when an endpoint shows a certificate that begins after
///   the document was signed, which to a device whose clock is behind would not be valid yet.
/// - The time of signing goes back only after a clock that was more than a day ahead, and only once an
///   endpoint has shown a chain that is valid by the clock as it is now: otherwise that one may be the wrong
///   one, and what is signed by a clock far behind expires at once.
struct TimeProof: Sendable, Equatable {
  /// From when the newest certificate that was accepted is valid.
  private var newestCertificate: Int64 = 0
  /// When an endpoint was last accepted.
  private var accepted: Int64?

  mutating func enter(_ look: Look, at now: Int64) {
    guard let begins = look.newestCertificate else { return }
    newestCertificate = max(newestCertificate, begins)
    // Whoever judged it may go by another clock than the one that documents are signed by.
    if begins <= now { accepted = now }
  }

  /// Whether an unchanged document that was signed then is signed again.
  func asksForSigning(signed: Int64, at now: Int64) -> Bool {
    now - signed >= DocumentSigner.renewal || time(after: signed, at: now) < signed
      || (newestCertificate > signed && newestCertificate <= now)
  }

  /// The time to sign at, after a document that was signed at `last`.
  func time(after last: Int64, at now: Int64) -> Int64 {
    let wasAhead = last > now + DocumentSigner.renewal
    return wasAhead && accepted.map { $0 <= now } ?? false ? now : max(now, last)
  }
}
