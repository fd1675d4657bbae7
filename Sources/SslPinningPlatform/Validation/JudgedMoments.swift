import SslPinningRules

/// Evaluates a chain at the times at one of which all its dates must hold, one after the other. The first time
/// without a fault ends it, and so does any fault but a date: nothing else of a path depends on the time.
package enum MomentWalk {
  /// - Parameters:
  ///   - moments: Unix seconds; empty means the system's clock, which is `nil` to `evaluate`.
  ///   - evaluate: the fault at one time, if there is one.
  /// - Returns: the last fault, or none. A chain that is early at one of the times may be early.
  package static func fault(
    at moments: [Int64], evaluate: (Int64?) -> ChainFault?
  ) -> ChainFault? {
    var last: ChainFault?
    for moment in asked(moments) {
      let fault = evaluate(moment)
      guard case .outOfDate = fault else { return fault }
      last = later(fault, after: last)
    }
    return last
  }

  /// The same for an evaluation that blocks no thread.
  package static func fault(
    at moments: [Int64], evaluate: (Int64?) async -> ChainFault?
  ) async -> ChainFault? {
    var last: ChainFault?
    for moment in asked(moments) {
      let fault = await evaluate(moment)
      guard case .outOfDate = fault else { return fault }
      last = later(fault, after: last)
    }
    return last
  }

  private static func asked(_ moments: [Int64]) -> [Int64?] { moments.isEmpty ? [nil] : moments }

  private static func later(_ fault: ChainFault?, after earlier: ChainFault?) -> ChainFault? {
    guard case .outOfDate(let code, let reason, let mayBeEarly) = fault else { return fault }
    return .outOfDate(
      code: code, reason: reason, mayBeEarly: mayBeEarly || earlier?.isEarly == true)
  }
}

/// When the dates of a registry's own server must hold: whoever is kept from the registry is kept from
/// the cure.
///
/// - At the device's clock or at the time floor, as everywhere (``SslPinningRules/TrustTime``).
/// - A client that believes a statement also takes a chain whose leaf begins later than its clock or the floor, at
///   the chain's own beginning. Otherwise a device whose clock is far behind, or ahead by more than a certificate
///   lives, would lose its registry for good on the day on which the registry's certificate is renewed, or
///   the floor is ahead by accident or theft: nothing newer could ever reach it. The same goes for a leaf that is
///   valid at one of the times that everybody is judged at, if its issuer was certified again later. What that
///   gives away is the date alone, and the document is signed: path, name and all other dates are judged as ever,
///   at that moment.
/// - A client that believes nothing yet has the clock alone. It is told that its clock is the likely cause.
enum RegistryDates {
  /// The moment to judge at after those that everybody is judged at (Unix seconds): the beginning of a
  /// chain, which is that of its newest certificate.
  ///
  /// - It is later than the clock or the floor: an older path that has ended stays ended.
  /// - The leaf alone decides whether there is one: it is newer itself, or valid by now. A newer certificate that is
  ///   sent beside an old chain must not revive it.
  /// - Such a certificate may move the moment. That gains nothing: all dates of the path must hold at it.
  ///
  /// - Parameter presented: the certificates in DER, leaf first.
  static func lastMoment(for presented: [[UInt8]], at time: TrustTime?) -> Int64? {
    let validities = presented.map(SubjectPublicKeyInfo.validity(inCertificate:))
    guard let time, time.believesStatement, let leaf = validities.first ?? nil,
      let last = validities.compactMap({ $0?.notBefore }).max()
    else { return nil }
    let earliest = min(time.clock, time.floor ?? time.clock)
    let isValid = time.dates.contains { leaf.notBefore <= $0 && $0 <= leaf.notAfter }
    guard leaf.notBefore > earliest || isValid && last > earliest else { return nil }
    return last
  }

  /// The judgement of a server that a library makes whole, at a list of times: at those that everybody is judged
  /// at, and, if the chain fails for its dates alone, at the last moment.
  ///
  /// - Parameters:
  ///   - presented: the certificates in DER, leaf first.
  ///   - judge: judges at these times (Unix seconds); none means the system's clock.
  static func evidence(
    at time: TrustTime?, presented: () -> [[UInt8]], judging judge: ([Int64]) -> ChainEvidence
  ) -> ChainEvidence {
    let evidence = judge(time?.dates ?? [])
    guard case .failure(.outOfDate) = evidence.validation,
      let last = lastMoment(for: presented(), at: time)
    else { return evidence }
    return judge([last])
  }
}
