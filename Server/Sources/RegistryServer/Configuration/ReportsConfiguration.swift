/// The pin failures that apps report.
public struct ReportsConfiguration: Sendable, Equatable {
  /// Whether reports are taken.
  public var isEnabled: Bool
  /// How many groups of like reports are kept: 10 000.
  public var maximumGroups: Int

  /// Settings; the defaults are those of the configuration file.
  public init(isEnabled: Bool = true, maximumGroups: Int = 10_000) {
    self.isEnabled = isEnabled
    self.maximumGroups = maximumGroups
  }
}
