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
