/// What a server may make of its clock when it signs: the time of signing is the time that devices with
/// wrong clocks go by. All times are Unix seconds. Pure.
///
/// - A document is signed again after a day; and when an endpoint shows a chain that begins after the
///   document was signed, which to a device whose clock is behind would not be valid yet.
/// - The time of signing goes back only after a clock that was more than a day ahead, and only once an
///   endpoint shows a chain that is valid by the clock as it is now and would have ended by the other. That
///   one is then the wrong one. A chain that is valid by both tells nothing: the clock may be behind now,
///   and what is signed far behind expires at once.
/// - A clock that is confirmed (``SteadyTime``) needs no such chain, and takes back what is more than an hour ahead.
package struct TimeProof: Sendable {
  /// How long a signed document is published before it is signed again unchanged, in seconds: a day.
  package static let renewal: Int64 = 86_400

  /// From when the newest chain that was accepted is valid.
  private var newestChain: Int64 = 0
  /// Of the chains that were accepted, the one that ends first: when it was shown, and its end.
  private var firstToEnd: (shown: Int64, ends: Int64)?
  /// Whether the clock is known to be right.
  var isClockConfirmed = false

  mutating func enter(_ probe: ProbeResult, at now: Int64) {
    for chain in probe.validities {
      newestChain = max(newestChain, chain.from)
      // Whoever judged it may go by another clock than the one that documents are signed by.
      guard chain.from <= now, now <= chain.to else { continue }
      if let known = firstToEnd, known.ends < chain.to, now <= known.ends { continue }
      firstToEnd = (now, chain.to)
    }
  }

  /// Whether an unchanged document that was signed then is signed again.
  ///
  /// - Parameter isNumbered: whether it has a number. Without one its time is what tells it from the last,
  ///   so it cannot go back.
  func asksForSigning(signed: Int64, at now: Int64, isNumbered: Bool = true) -> Bool {
    now - signed >= Self.renewal
      || (isNumbered && time(after: signed, at: now) < signed)
      || (newestChain > signed && newestChain <= now)
  }

  /// The time to sign at, after a document that was signed at `last`.
  func time(after last: Int64, at now: Int64) -> Int64 {
    if isClockConfirmed, last > now + SteadyTime.tolerance { return now }
    guard last > now + Self.renewal, let proof = firstToEnd, proof.shown <= now,
      now <= proof.ends, proof.ends < last
    else { return max(now, last) }
    return now
  }
}
