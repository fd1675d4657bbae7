import SslPinningRules

/// Something that an operator should look at, for as long as it lasts.
public struct ServerAlert: Sendable, Hashable {
  /// What kind of trouble.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An endpoint shows a chain that proves nothing.
    case chainRefused = "chain-refused"
    /// Only vantage points are shown such a chain, and a listed key is shown elsewhere.
    case chainDisputed = "chain-disputed"
    /// An endpoint could not be asked, three probes in a row.
    case unreachable
    /// A new key waits for a person or for another vantage point.
    case keyHeld = "key-held"
    /// A key that nobody announced is published; for a day, or until a person approves it.
    case unannouncedKey = "unannounced-key"
    /// A key that nobody announced was there for a moment and is published no more; for a day.
    case keyWithdrawn = "key-withdrawn"
    /// A key that is published is not seen, and a place that showed it does not answer; or it was there for a
    /// moment, and what is shown now does not prove that it was not the servers'.
    case keyUndecided = "key-undecided"
    /// A key was announced a week ago, and no probe has shown it; for a week.
    case stagedKeyUnshown = "staged-key-unshown"
    /// More new keys at once than are counted; for a day.
    case tooManyKeys = "too-many-keys"
    /// Many endpoints changed at once; for a day since the last of them, in place of an alert for each key
    /// that it lists.
    case massChange = "mass-change"
    /// An endpoint shows a key that is denied.
    case deniedKeySeen = "denied-key-seen"
    /// Fewer vantage points than the quorum reach an endpoint for ten minutes, though more of them are there.
    case vantageBlocked = "vantage-blocked"
    /// A vantage point does not answer, or sees no endpoint. About the server, of no document.
    case vantageSilent = "vantage-silent"
    /// An endpoint shows a path with none of the CAs that clients ask for.
    case caMissing = "ca-missing"
    /// An endpoint with published keys is no longer configured; clients keep its last pins.
    case leftConfiguration = "left-configuration"
    /// The newest document could not be signed, or soon no other can be.
    case signing
    /// The newest document could not be stored, or its copy in `publish.dir` could not be written.
    case storing
    /// The machine's clock jumped, and the server does not go by it. About the server, of no document.
    case clock
    /// The certificate that this server shows its own callers ends soon, or has ended. About the server, of no document.
    case listenerCertificateEnds = "listener-certificate-ends"
    /// No server leads on the store, as far as this one sees: nobody watches. About the server, of no document.
    case nobodyLeads = "nobody-leads"
    /// The store goes by another signing key than this server's: nothing is decided or signed.
    case otherSigningKey = "other-signing-key"
    /// What the store has of the document is not as a server with the key wrote it, or is gone: nothing is
    /// decided or signed for it.
    case sealBroken = "seal-broken"
    /// The store was lost, and the document goes on from its copy in `publish.dir`; for a day.
    case storeLost = "store-lost"

    /// Whether it tells of a moment. One that comes again begins it anew.
    var isOfMoment: Bool {
      switch self {
      case .unannouncedKey, .keyWithdrawn, .tooManyKeys, .massChange, .storeLost: true
      default: false
      }
    }

    /// Whether each time that it is raised is another one. What an endpoint shows with every probe is one alert for as long
    /// as it stands.
    var isAnotherEachTime: Bool { isOfMoment && self != .tooManyKeys }
  }

  /// The kinds of alerts of the whole document that are over once something is stored. That a newer key set cannot be
  /// used lasts although the document is signed, under the set before.
  ///
  /// - Parameter isSound: whether everything can be signed as it should be.
  package static func ending(isSigning: Bool, isSound: Bool) -> [Kind] {
    isSigning && isSound ? [.storing, .signing] : [.storing]
  }

  /// For how many seconds alerts stand that tell of a moment.
  static let day: Int64 = 86_400

  private var isOfMoment: Bool { kind.isOfMoment }

  /// Whether it told of a moment that is long over.
  func isOver(at now: Int64) -> Bool { isOfMoment && now - since > Self.day }

  /// Says what the same alert says now.
  mutating func renew(_ other: ServerAlert) {
    (message, patterns) = (other.message, other.patterns)
    if isOfMoment { since = max(since, other.since) }
  }

  /// What tells it from other alerts about the same endpoint, and from itself before it began anew.
  var identity: String {
    kind.rawValue + (pin?.base64 ?? "") + (kind.isAnotherEachTime ? " \(since)" : "")
  }

  /// What kind of trouble.
  public var kind: Kind
  /// The endpoint's id; empty where it is about the whole document.
  public var endpoint: String
  /// The key that it is about.
  public var pin: SPKIPin?
  /// What is known, for people.
  public var message: String
  /// Since when, in Unix seconds.
  public var since: Int64
  /// The patterns that it is about, if they may become more while it lasts; not in a record.
  package var patterns: Set<HostPattern> = []

  /// An alert.
  public init(
    kind: Kind, endpoint: String = "", pin: SPKIPin? = nil, message: String, since: Int64
  ) {
    self.kind = kind
    self.endpoint = endpoint
    self.pin = pin
    self.message = message
    self.since = since
  }
}
