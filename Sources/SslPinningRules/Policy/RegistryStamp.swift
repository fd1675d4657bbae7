/// The registry on which a verdict is based, and its age.
public struct RegistryStamp: Hashable, Sendable {
  /// The key set's epoch and the statement's version; `nil` in format 1, which has neither.
  public struct Version: Hashable, Sendable, Comparable {
    /// The key set's epoch.
    public let epoch: Int64
    /// The statement's version within the epoch.
    public let version: Int64

    /// A version.
    public init(epoch: Int64, version: Int64) {
      self.epoch = epoch
      self.version = version
    }

    public static func < (left: Version, right: Version) -> Bool {
      (left.epoch, left.version) < (right.epoch, right.version)
    }
  }

  /// The registry's version, if its format has one.
  public let version: Version?
  /// SHA-256 over the canonical payload, in lower-case hex; identifies format-1 documents.
  public let payloadDigest: String
  /// Unix time in seconds at which the registry was last confirmed by its server.
  package let confirmed: Int64
  /// The fork in its history, if this process has found one.
  public let fork: RegistryFork?

  /// A stamp.
  package init(
    version: Version?, payloadDigest: String, confirmed: Int64, fork: RegistryFork? = nil
  ) {
    self.version = version
    self.payloadDigest = payloadDigest
    self.confirmed = confirmed
    self.fork = fork
  }

  /// After how many seconds without a confirmation a registry is stale: 7 days. Its pins still count, and
  /// verdicts say that it is stale.
  package static let staleAfter: Int64 = 7 * 86400

  /// Whether the registry, at `now` (Unix seconds), was last confirmed too long ago, or at an unknown time: 0, which
  /// is not long ago for a device that starts in 1970; a time in the future was written under a fast clock.
  package func isStale(at now: Int64) -> Bool {
    confirmed == 0 || age(at: now) > Self.staleAfter || !Self.isPast(confirmed, at: now)
  }

  /// Whether a stored time is credible at `now`: not in the future by more than an hour, which allows for small
  /// corrections of the clock.
  static func isPast(_ time: Int64, at now: Int64) -> Bool {
    let (limit, overflow) = now.addingReportingOverflow(3600)
    return overflow || time <= limit
  }

  /// When the registry was last confirmed, in Unix seconds; 0 if that time is not credible at `now`.
  func knownConfirmation(at now: Int64) -> Int64 { Self.isPast(confirmed, at: now) ? confirmed : 0 }

  /// Seconds since the registry was last confirmed, never negative.
  package func age(at now: Int64) -> Int64 {
    let (age, overflow) = now.subtractingReportingOverflow(confirmed)
    return overflow ? (now < confirmed ? 0 : .max) : max(0, age)
  }
}

extension RegistryStamp.Version: CustomStringConvertible {
  /// Epoch and version, as `1.42`.
  public var description: String { "\(epoch).\(version)" }
}

extension RegistryStamp: CustomStringConvertible {
  /// One line: the version, or else the beginning of the digest, and when its server last confirmed it.
  public var description: String {
    let name = version.map { "version \($0)" } ?? "payload \(payloadDigest.prefix(16))…"
    return "\(name), confirmed \(RFC3339.text(confirmed))"
  }
}

/// The two times that a client knows, both in Unix seconds: the device's clock, and the floor, which is the
/// time that the signer of the current statement vouches for (`issued`).
///
/// - Neither may keep a client from what repairs a wrong time: many devices have wrong clocks, and `issued` is
///   wrong if the signer's clock was, or if a thief wrote it.
/// - So a chain's dates pass if all of them hold at the clock *or* all of them hold at the floor of an unexpired
///   statement. An expired statement vouches for no time: otherwise a certificate that ended years ago would
///   pass for as long as an app keeps pinning.
/// - What must not come back is checked at the later of the two: an expired pin, the time of a vanished host.
/// - A statement's own expiry is checked only against the clock, or an `issued` far ahead would end it.
public struct TrustTime: Hashable, Sendable {
  /// The device's clock, in Unix seconds.
  public let clock: Int64
  /// The `issued` of the current statement, in Unix seconds; `nil` if no statement vouches for a time.
  public let floor: Int64?

  /// Whether dates may hold at the floor, because its statement has not expired.
  public let isFloorInForce: Bool

  /// Whether a statement is believed, retired or not: then documents are checked by more than the dates of their
  /// server's certificate.
  public let believesStatement: Bool

  /// The two times, in Unix seconds.
  public init(
    clock: Int64, floor: Int64? = nil, isFloorInForce: Bool = true, believesStatement: Bool? = nil
  ) {
    self.believesStatement = believesStatement ?? (floor != nil)
    self.clock = clock
    self.floor = floor
    self.isFloorInForce = isFloorInForce
  }

  /// The last second that a certificate can express, at the end of the year 9999 (RFC 5280 §4.1.2.5).
  private static let lastDate: Int64 = 253_402_300_799

  /// The later of the two, in Unix seconds.
  public var later: Int64 { max(clock, floor ?? clock) }

  /// The times at which a chain's dates may hold, in Unix seconds, in the order in which to try them.
  public var dates: [Int64] {
    guard let floor, floor != clock, isFloorInForce, floor <= Self.lastDate else { return [clock] }
    return [clock, floor]
  }
}

/// Identifies a statement: `{"epoch": 1, "version": 7, "digest": "<base64>"}`, as in the `previous` of the
/// next one.
public struct StatementID: Hashable, Sendable {
  /// Its number.
  public let number: RegistryStamp.Version
  /// SHA-256 of its RFC 8785 form.
  public let digest: [UInt8]
}

/// A fork in a registry's history: a signed statement that does not follow the one that this client believed.
/// An online key signed for a single audience, two servers sign one registry, or a server lost its store.
public struct RegistryFork: Hashable, Sendable {
  /// The statement believed here.
  public let believed: StatementID
  /// The statement that the other one says it follows; or the other one itself, if it has the number of the
  /// believed one.
  public let named: StatementID

  /// Publishers sign ascending numbers, and no number twice. So it is a fork if `other`, or the statement that it
  /// follows, has the believed number and other bytes, or if it follows one of a lower number.
  ///
  /// - Returns: `nil` if `other` is older than the believed statement, is that statement, follows it or a later one
  ///   that this client never saw, or does not say what it follows.
  init?(_ other: StatementID, following previous: StatementID?, from believed: StatementID) {
    let named = other.number == believed.number ? other : previous
    guard let named, other.number >= believed.number, named.number <= believed.number,
      named != believed
    else { return nil }
    (self.believed, self.named) = (believed, named)
  }
}

extension StatementID: CustomStringConvertible {
  /// Its number and its digest in lower-case hex.
  public var description: String { "\(number) \(hex(digest))" }
}

extension RegistryFork: CustomStringConvertible {
  /// What happened, in one line.
  public var description: String {
    "version \(believed.number) (\(hex(believed.digest).prefix(16))…) was believed here, and what came next"
      + " follows or is version \(named.number) (\(hex(named.digest).prefix(16))…);"
      + " hint: is the online key used elsewhere?"
  }
}
