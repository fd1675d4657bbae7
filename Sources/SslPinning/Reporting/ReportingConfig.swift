import SslPinningPlatform

/// Tells collectors of the app's about failed pins. Opt-in: without this, nothing is ever sent.
///
/// Reports are JSON in TrustKit's format; `docs/failure-reports.md` lists what is in them. They say
/// with whom the app wanted to talk, never what about.
public struct ReportingConfig: Hashable, Sendable {
  /// Where reports are POSTed, each to all: `https`, or `http` to a loopback address. Judged like any
  /// server by its chain and name, never by pins: a pin that fails must be reported.
  public var urls: [String]
  /// The app's bundle identifier.
  public var appBundleId: String
  /// The app's version.
  public var appVersion: String
  /// The system: `IOS`, `MACOS`, `LINUX`, ….
  public var appPlatform: String
  /// The system's version.
  public var appPlatformVersion: String
  /// What tells this installation from others, if the app's users have agreed to being told apart;
  /// left out otherwise.
  public var appVendorId: String?
  /// Whether failures are reported that report-only let through.
  public var includesReportOnly: Bool

  /// A configuration; what the system knows of itself is filled in.
  public init(
    urls: [String], appBundleId: String, appVersion: String, appPlatform: String? = nil,
    appPlatformVersion: String? = nil, appVendorId: String? = nil, includesReportOnly: Bool = true
  ) {
    self.urls = urls
    self.appBundleId = appBundleId
    self.appVersion = appVersion
    self.appPlatform = appPlatform ?? SystemName.platform
    self.appPlatformVersion = appPlatformVersion ?? SystemName.version
    self.appVendorId = appVendorId
    self.includesReportOnly = includesReportOnly
  }
}
