import SslPinningPlatform
import SslPinningRules

extension FailureReporter {
  /// The reporter that an app asked for; `nil` where it asked for none.
  ///
  /// - Throws: ``ReportingError``. An anchor that cannot be read is told by whoever needs it first,
  ///   and leaves reports to the system's anchors.
  static func make(
    _ config: ReportingConfig?, trust: TrustMode, storage: RegistryStorage, clocks: Clocks,
    events: @escaping @Sendable (ReportingEvent) -> Void
  ) throws(ReportingError) -> FailureReporter? {
    guard let config else { return nil }
    guard let directory = storage.path else { throw .noStorage }
    guard let poster = (try? ReportPoster(trust: trust)) ?? (try? ReportPoster(trust: .system))
    else { return nil }
    return try FailureReporter(
      config: config, directory: directory, poster: poster, clocks: clocks, events: events)
  }
}
