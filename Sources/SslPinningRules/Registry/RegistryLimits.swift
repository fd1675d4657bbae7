/// How large a registry document may be. A document beyond a limit is refused before it is parsed.
public struct RegistryLimits: Hashable, Sendable {
  /// Bytes of the whole document: 4 MiB by default, some 20 000 entries.
  public var maximumBytes: Int
  /// Days that a host which vanished from a newer document keeps its last pins.
  public var vanishedHostDays: Int64
  /// Documents that are kept for the sake of hosts that vanished since: 64 by default. The hosts
  /// of the oldest go beyond that.
  public var maximumOlderDocuments: Int

  /// Limits; the defaults are those of `docs/registry-format.md`.
  public init(
    maximumBytes: Int = 4 << 20, vanishedHostDays: Int64 = 30, maximumOlderDocuments: Int = 64
  ) {
    self.maximumBytes = max(0, maximumBytes)
    self.vanishedHostDays = vanishedHostDays
    self.maximumOlderDocuments = maximumOlderDocuments
  }

  /// The defaults.
  public static let standard = RegistryLimits()

  /// Whether a host that vanished at `since` still has its pins at `now`, both in Unix seconds.
  func keepsVanished(since: Int64, at now: Int64) -> Bool {
    let (seconds, isForEver) = vanishedHostDays.multipliedReportingOverflow(by: 86400)
    let (end, isBeyondTime) = since.addingReportingOverflow(seconds)
    return (isForEver || isBeyondTime) ? vanishedHostDays > 0 : now <= end
  }
}
