import CanonicalJSON

/// Key sets that a client believes before it believes any document: those of first documents that it
/// refused. Without them, whoever serves an older document next could sign with keys that were withdrawn.
public struct LearnedKeySets: Sendable {
  let chain: KeySetChain?

  /// Nothing but what the app ships.
  public static let none = LearnedKeySets(chain: nil)

  /// The epoch of the newest; 0 is what the app ships.
  public var epoch: Int64 { chain?.newest.epoch ?? 0 }

  /// The longer of the two chains: both begin with what the app ships.
  public func merged(with other: LearnedKeySets) -> LearnedKeySets {
    other.epoch > epoch ? other : self
  }

  /// What to store while there is no registry.
  public var state: StoredState {
    StoredState(
      document: nil, statementDocument: nil, keySets: chain?.entries ?? [], confirmed: 0,
      enforced: [], vanished: [])
  }

  /// What a stored state proves of key sets, with or without a registry in it.
  public init(restoring state: StoredState, under trust: RegistryTrust) {
    var chain = KeySetChain(shipped: trust.shipped)
    _ = chain.walk(.array(state.keySets), under: trust)
    self.chain = chain
  }

  init(chain: KeySetChain?) { self.chain = chain }
}

/// What became of a document that came in before there was a registry.
public enum FirstDocument: Sendable {
  /// It is believed.
  case believed(TrustedRegistry)
  /// It is not; key sets of it may be believed all the same, and are worth storing.
  case refused(RegistryError, learned: LearnedKeySets)
}

extension TrustedRegistry {
  /// Judges a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - learned: key sets of documents that were refused before.
  ///   - clock: Unix time in seconds.
  ///   - road: who brought the document.
  public static func first(
    _ bytes: [UInt8], under trust: RegistryTrust, knowing learned: LearnedKeySets = .none,
    at clock: Int64, by road: Road = .server
  ) -> FirstDocument {
    var judge = DocumentJudge(
      trust: trust, clock: clock, standing: Standing(chain: learned.chain))
    do throws(RegistryError) {
      let envelope = try RegistryEnvelope(parsing: bytes, limits: trust.limits)
      if let refusal = road.refusal(of: envelope, believing: nil, under: trust) { throw refusal }
      return .believed(
        try believing(envelope, bytes, by: &judge, confirmed: road == .server ? clock : nil))
    } catch {
      return .refused(error, learned: LearnedKeySets(chain: judge.standing.chain ?? learned.chain))
    }
  }

  /// The same registry, with key sets that came in beside documents which were refused.
  ///
  /// What they withdrew stays withdrawn, though the registry in force may be older than they are.
  public func knowing(_ learned: LearnedKeySets) -> TrustedRegistry {
    guard learned.epoch > keySetEpoch, let chain = learned.chain,
      standing.statement.map({ chain.set($0.number.epoch) != nil }) ?? true
    else { return self }
    var standing = self.standing
    standing.chain = chain
    return TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: stamp.confirmed,
      limits: limits)
  }

  static func believing(
    _ envelope: RegistryEnvelope, _ bytes: [UInt8], by judge: inout DocumentJudge,
    confirmed: Int64?
  ) throws(RegistryError) -> TrustedRegistry {
    let limits = judge.trust.limits
    let document = try judge.judge(envelope, bytes: bytes)
    return TrustedRegistry(
      document: document, standing: judge.standing, vanished: VanishedHosts(),
      confirmed: confirmed ?? judge.standing.statement?.issued ?? 0, limits: limits)
  }
}
