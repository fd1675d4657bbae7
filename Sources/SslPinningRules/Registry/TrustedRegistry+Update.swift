/// Coming to believe a document, its statement or the lack of one judged.
extension TrustedRegistry {
  /// Believes a first document that was fetched.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``.
  public init(
    accepting bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var judge = DocumentJudge(trust: trust, clock: clock)
    self = try Self.believing(
      try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes, by: &judge,
      confirmed: clock)
  }

  /// Believes the document that an app ships as its first, expired or not: nothing older is believed
  /// from then on. Whether an expired one serves for verdicts is the policy's to say.
  ///
  /// Nobody confirmed it today: it counts as confirmed when its statement was issued, and without a
  /// statement never.
  ///
  /// - Parameters:
  ///   - bytes: the document as a server publishes it.
  ///   - trust: what the app ships beside it.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``.
  public init(
    bundled bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var judge = DocumentJudge(trust: trust, clock: clock, origin: .bundled)
    self = try Self.believing(
      try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes, by: &judge,
      confirmed: nil)
  }

  /// What is believed after a document came in.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  ///   - road: who brought the document.
  /// - Returns: the registry to go on with, and why the document was refused where it was.
  public func update(
    with bytes: [UInt8], under trust: RegistryTrust, at clock: Int64, by road: Road = .server
  ) -> RegistryUpdate {
    let envelope: RegistryEnvelope
    do throws(RegistryError) {
      envelope = try RegistryEnvelope(parsing: bytes, limits: trust.limits)
    } catch { return RegistryUpdate(registry: self, refusal: error) }
    if let refusal = road.refusal(of: envelope, believing: statement, under: trust) {
      return RegistryUpdate(registry: self, refusal: refusal)
    }
    var judge = DocumentJudge(trust: trust, clock: clock, standing: standing)
    do throws(RegistryError) {
      let next = try judge.judge(envelope, bytes: bytes)
      return RegistryUpdate(registry: replaced(by: next, judge, at: clock, by: road), refusal: nil)
    } catch {
      var standing = self.standing
      standing.chain = judge.standing.chain
      standing.fork = judge.standing.fork
      let same = TrustedRegistry(
        document: document, standing: standing, vanished: vanished, confirmed: stamp.confirmed,
        limits: limits)
      return RegistryUpdate(registry: same, refusal: error)
    }
  }

  private func replaced(
    by next: AcceptedDocument, _ judge: DocumentJudge, at clock: Int64, by road: Road
  ) -> TrustedRegistry {
    // Of copies of one statement the first stays (`DocumentJudge`).
    let isCopy = document.statement.map { $0.json == next.statement?.json } ?? false
    let next = isCopy ? document : next
    var vanished = self.vanished
    vanished.replace(document, by: next, at: clock, limits: limits)
    if judge.beginsEpoch { vanished.keep(where: judge.standing.vouches) }
    return TrustedRegistry(
      document: next, standing: judge.standing, vanished: vanished,
      confirmed: confirmation(of: next, at: clock, by: road), limits: limits)
  }

  private func confirmation(
    of next: AcceptedDocument, at clock: Int64, by road: Road
  ) -> Int64 {
    switch road {
    case .server: clock
    // Never later than what is signed: or a copy that somebody kept would pass for today's news.
    case .mirror, .hand:
      max(
        stamp.knownConfirmation(at: clock),
        next.statement.map { min($0.issued, clock) } ?? 0)
    }
  }

  /// Who brought a document.
  public enum Road: Sendable {
    /// The registry's own URL: what it says today.
    case server
    /// A mirror. Judged by the same rules, with one more: it has a statement that is not retired, since
    /// nothing else binds its list and tells a new one from an old one. It confirms nothing.
    case mirror
    /// Anybody: a push message, a file, a code on paper. As from a mirror; moreover, where no statement is
    /// believed yet, the app ships a minimum.
    case hand

    /// Why a document that came this way is not even looked at.
    func refusal(
      of envelope: RegistryEnvelope, believing statement: Statement?, under trust: RegistryTrust
    ) -> RegistryError? {
      if self == .server { return nil }
      guard let own = envelope.document["statement"] else { return .statementRequired }
      // Whatever stands beside a retired one, and be it years old, has the same right to.
      if own.objectValue.map(Statement.saysRetired) ?? false { return .statementRequired }
      return self == .hand && statement == nil && trust.minimum == nil ? .minimumRequired : nil
    }
  }
}
