extension Registry {
  /// What clients will make of a document that nobody signed yet: its policy, and the times to judge by.
  /// Nothing is believed here, and nothing else is handed out that a believed document has.
  ///
  /// - Parameters:
  ///   - statement: what will stand beside the payload; `nil` in format 1.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``PolicyError``, never under the settings that are used here.
  package func draftPolicy(
    under statement: Statement?, at clock: Int64
  ) throws(PolicyError) -> (policy: PinningPolicy, time: TrustTime) {
    var standing = TrustedRegistry.Standing()
    standing.statement = statement
    let document = AcceptedDocument(
      bytes: [], payloadDigest: "", registry: self,
      statement: statement?.isRetired == true ? nil : statement)
    let draft = TrustedRegistry(
      document: document, standing: standing, vanished: VanishedHosts(), confirmed: clock,
      limits: .standard)
    return (try draft.policy(), draft.time(at: clock))
  }
}
