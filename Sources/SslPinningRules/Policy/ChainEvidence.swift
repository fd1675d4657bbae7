/// What is known of the other side of one connection when its pins are judged.
public struct ChainEvidence: Hashable, Sendable {
  /// The pins of the certificates as the server sent them, leaf first. For telling, and for
  /// ``TrustMode/pinnedKeysOnly``; never matched otherwise.
  public let presented: [SPKIPin]
  /// The validated chain, or why there is none.
  public let validation: Result<ValidatedChain, ChainFault>

  /// Evidence of a connection whose chain was validated or not.
  package init(presented: [SPKIPin], validation: Result<ValidatedChain, ChainFault>) {
    self.presented = presented
    self.validation = validation
  }
}

extension ChainFault: Error {}
