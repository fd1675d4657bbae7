import Pinning

/// Something that an operator should look at, for as long as it lasts.
public struct ServerAlert: Sendable, Hashable {
  /// What kind of trouble.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An endpoint shows a chain that proves nothing.
    case chainRefused = "chain-refused"
    /// An endpoint could not be asked, three looks in a row.
    case unreachable
    /// A new key waits for a person or for another vantage point.
    case keyHeld = "key-held"
    /// A key that nobody announced is published; for a day, or until a person approves it.
    case unannouncedKey = "unannounced-key"
    /// A key that nobody announced was there for a moment and is published no more; for a day.
    case keyWithdrawn = "key-withdrawn"
    /// Many endpoints changed at once; for a day, in place of an alert for each.
    case massChange = "mass-change"
    /// An endpoint shows a key that is denied.
    case deniedKeySeen = "denied-key-seen"
    /// An endpoint with published keys is no longer configured; clients keep its last pins.
    case leftConfiguration = "left-configuration"
    /// The newest document could not be signed.
    case signing
    /// The newest document could not be stored.
    case storing
    /// The store goes by another signing key than this server's: nothing is decided or signed.
    case otherSigningKey = "other-signing-key"
    /// What the store has of the document is not as a server with the key wrote it, or is gone: nothing is
    /// decided or signed for it.
    case sealBroken = "seal-broken"
  }

  /// For how many seconds alerts stand that tell of a moment.
  static let day: Int64 = 86_400

  /// Whether it told of a moment that is long over.
  func isOver(at now: Int64) -> Bool {
    switch kind {
    case .unannouncedKey, .keyWithdrawn, .massChange: now - since > Self.day
    default: false
    }
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
