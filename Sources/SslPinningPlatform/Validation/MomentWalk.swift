import SslPinningRules

/// Evaluates a chain at the times at one of which all its dates must hold, one after the other. The first time
/// without a fault ends it, and so does any fault but a date: nothing else depends on the time.
package enum MomentWalk {
  /// - Parameters:
  ///   - moments: Unix seconds; empty means the system's clock, which is `nil` to `evaluate`.
  ///   - evaluate: the fault at one time, if there is one.
  /// - Returns: the last fault, or none.
  package static func fault(
    at moments: [Int64], evaluate: (Int64?) -> ChainFault?
  ) -> ChainFault? {
    guard let last = moments.last else { return evaluate(nil) }
    for moment in moments.dropLast() {
      let fault = evaluate(moment)
      guard case .outOfDate = fault else { return fault }
    }
    return evaluate(last)
  }

  /// The same for an evaluation that blocks no thread.
  package static func fault(
    at moments: [Int64], evaluate: (Int64?) async -> ChainFault?
  ) async -> ChainFault? {
    guard let last = moments.last else { return await evaluate(nil) }
    for moment in moments.dropLast() {
      let fault = await evaluate(moment)
      guard case .outOfDate = fault else { return fault }
    }
    return await evaluate(last)
  }
}
