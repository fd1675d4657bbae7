extension Registry {
  /// What clients will make of a document that nobody signed yet: its policy, and the times to judge by.
  /// Nothing is believed here, and nothing else is handed out that a believed document has.
  ///
  /// - Parameters:
  ///   - statement: what will stand beside the payload; `nil` in format 1.
  ///   - clock: Unix time in seconds.
  ///   - old: what the client believes until then, whose vanished hosts it keeps; `nil` for a new client, and where
  ///     a new epoch has clients let go of them.
  ///   - whenExpired: what happens once the statement is expired.
  /// - Throws: ``PolicyError``, never under the settings that are used here.
  package func draftPolicy(
    under statement: Statement?, at clock: Int64,
    after old: (list: Registry, statement: Statement?)? = nil,
    whenExpired: TrustedRegistry.WhenExpired = .refuse
  ) throws(PolicyError) -> (policy: PinningPolicy, time: TrustTime) {
    var standing = TrustedRegistry.Standing()
    standing.statement = statement
    let document = draft(under: statement)
    var vanished = VanishedHosts()
    if let old {
      vanished.replace(
        old.list.draft(under: old.statement), by: document, at: clock, limits: .standard)
    }
    let draft = TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: clock,
      limits: .standard)
    return (try draft.policy(whenExpired: whenExpired), draft.time(at: clock))
  }

  private func draft(under statement: Statement?) -> AcceptedDocument {
    AcceptedDocument(
      bytes: [], payloadDigest: "", registry: self,
      statement: statement?.isRetired == true ? nil : statement,
      removed: Set(statement?.removed ?? []))
  }
}
