import RegistryCore
extension ProbeResult {
  /// Why the probe as a whole showed no key that can be believed; `nil` where it did.
  ///
  /// - An address that does not answer beside one that proves a key is no failure of the endpoint.
  /// - One that shows a chain that proves nothing beside one that proves a key is: somebody may stand
  ///   before one vantage point, or one of several servers was forgotten.
  /// - Of several causes a chain counts before a connection that did not come about, and then the first.
  var failure: ProbeFailureCause? {
    var refusal: ProbeFailureCause?
    var silence: ProbeFailureCause?
    for observation in observations {
      switch observation.outcome {
      case .accepted: continue
      case .refused: refusal = refusal ?? observation.failureCause
      case .unreachable: silence = silence ?? observation.failureCause
      }
    }
    if leaves.isEmpty { return refusal ?? silence ?? .other }
    return refusal == nil ? nil : .disagreement
  }

  /// The leaf certificates that it proved, each once.
  var leaves: [SeenCertificate] {
    var seen: Set<SeenCertificate> = []
    return observations.compactMap { observation in
      guard case .accepted(let chain) = observation.outcome else { return nil }
      return seen.insert(chain.leaf).inserted ? chain.leaf : nil
    }
  }
}

extension ProbeObservation {
  /// Why it proves no key; `nil` where it does.
  var failureCause: ProbeFailureCause? {
    switch outcome {
    case .accepted: nil
    case .refused: cause ?? .chain
    case .unreachable: cause ?? .other
    }
  }
}
