import Pinning

extension PinEvaluation {
  /// A refusal, for tests of what an app does and says after one.
  ///
  ///     let refusal = PinEvaluation.refused(host: "api.example.com")
  ///     #expect(message(for: refusal) == "This connection is not safe.")
  ///
  /// Refusals alone: an acceptance comes from a policy that was shown a validated chain, and nothing
  /// an app's code could mistake for one can be made by hand.
  ///
  /// - Parameters:
  ///   - host: the host as a request named it.
  ///   - outcome: what happened; by default the server's key is not pinned (rule `leaf-pin`).
  ///   - presented: the pins that the server showed, leaf first.
  ///   - expected: the pins that would have been accepted for the leaf.
  ///   - expectedCA: the pins that would have been accepted above the leaf.
  ///   - registry: which registry decided; `nil` where pins did not come from one.
  ///   - isStale: whether that registry was last confirmed too long ago.
  public static func refused(
    host: String, _ outcome: Outcome = .mismatch(.leaf), presented: [SPKIPin] = [],
    expected: [Pin] = [], expectedCA: [Pin] = [], registry: RegistryStamp? = nil,
    isStale: Bool = false
  ) -> PinEvaluation {
    PinEvaluation(
      host: host, outcome: outcome, decision: .refuse, presented: presented,
      expectedLeaf: expected, expectedCA: expectedCA, registry: registry, isStale: isStale)
  }
}
