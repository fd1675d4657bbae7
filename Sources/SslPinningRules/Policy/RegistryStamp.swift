/// Which registry a verdict rests on, and how old it is.
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

  /// The registry's version, where its format has one.
  public let version: Version?
  /// SHA-256 over the canonical payload, in lower-case hex: tells two format-1 documents apart.
  public let payloadDigest: String
  /// Unix time in seconds at which the registry was last confirmed by its server.
  package let confirmed: Int64
  /// Where its history was found to branch, in this process.
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

  /// Seconds without a confirmation after which a registry counts as stale: 7 days. Its pins count
  /// on; verdicts say so.
  package static let staleAfter: Int64 = 7 * 86400

  /// Whether the registry was last confirmed too long ago when the clock says `now` (Unix seconds), or
  /// nobody knows when: a time to come was written while the clock ran ahead.
  package func isStale(at now: Int64) -> Bool {
    age(at: now) > Self.staleAfter || !Self.isPast(confirmed, at: now)
  }

  /// Whether a stored time can be what it says it is when the clock says `now`. A clock that is put right
  /// by an hour or less is no reason to doubt.
  static func isPast(_ time: Int64, at now: Int64) -> Bool {
    let (limit, overflow) = now.addingReportingOverflow(3600)
    return overflow || time <= limit
  }

  /// When the registry was last confirmed, in Unix seconds; 0 where the clock (`now`) says that nobody
  /// knows.
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
  /// One line: the version, or the beginning of the digest where there is none, and when its server
  /// last confirmed it.
  public var description: String {
    let name = version.map { "version \($0)" } ?? "payload \(payloadDigest.prefix(16))…"
    return "\(name), confirmed \(RFC3339.text(confirmed))"
  }
}

/// The two times that a client knows, both in Unix seconds: what the device's clock says, and what the
/// signer of the statement in force vouches for.
///
/// - Neither may cut a client off from the cure. A clock is wrong on many devices; an `issued` is wrong
///   when the signer's clock was, or when a thief wrote it.
/// - So the dates of a chain pass if all of them hold at the clock *or* all of them hold at the floor: of a
///   statement that is not expired. An older one vouches for no time any longer, or a certificate that
///   ended years ago would pass for as long as an app keeps pinning.
/// - What must not come back takes the later of the two: a pin that expired, a time of absence.
/// - A statement's own expiry is judged at the clock alone, or one `issued` far ahead would end it.
public struct TrustTime: Hashable, Sendable {
  /// What the device's clock says, in Unix seconds.
  public let clock: Int64
  /// The `issued` of the statement in force, in Unix seconds; `nil` where no statement vouches for a time.
  public let floor: Int64?

  /// Whether dates may hold at the floor: whether its statement is still in force.
  public let isFloorInForce: Bool

  /// Whether a statement is believed, retired or not: then a registry's document is judged by more than its
  /// server's dates.
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

  /// The last second that a certificate can name, at the end of the year 9999 (RFC 5280 §4.1.2.5).
  private static let lastDate: Int64 = 253_402_300_799

  /// The later of the two, in Unix seconds.
  public var later: Int64 { max(clock, floor ?? clock) }

  /// The times at which the dates of a chain may hold, in Unix seconds, the one to be tried first in front.
  public var dates: [Int64] {
    guard let floor, floor != clock, isFloorInForce, floor <= Self.lastDate else { return [clock] }
    return [clock, floor]
  }
}

/// Which statement: `{"epoch": 1, "version": 7, "digest": "<base64>"}`, as the next one calls it in
/// `previous`.
public struct StatementID: Hashable, Sendable {
  /// Its number.
  public let number: RegistryStamp.Version
  /// SHA-256 of its RFC 8785 form.
  public let digest: [UInt8]
}

/// A history that branches: there is a signed statement that knows nothing of the one that this client
/// believed. An online key signed for a single audience, or two servers sign one registry, or one lost its
/// store.
public struct RegistryFork: Hashable, Sendable {
  /// What was believed here.
  public let believed: StatementID
  /// What the other statement says that it follows; itself, if it has the number of what was believed.
  public let named: StatementID

  /// - Returns: `nil` where `other` is or follows what was believed, or something later that this client never
  ///   saw, or does not say.
  ///
  /// A publisher signs upwards. So what follows a statement of the same number or a lower one than that in
  /// force here knows nothing of it. And no number is signed twice.
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
