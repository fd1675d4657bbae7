import Foundation
import SslPinningPlatform
import SslPinningRules

/// What an app ships: where its registry is, the keys that sign it, and how strict to be.
///
///     SslPinningConfig(endpointUrl: "https://pins.example.com/api/v1/app.json",
///                      signingKeyBase64: "<base64 of pub.pem>")
///
/// With root keys of one's own (format 2), online keys can be replaced without an app release:
///
///     SslPinningConfig(endpointUrl: url, rootKeys: [first, second, third], threshold: 2)
public struct SslPinningConfig: Hashable, Sendable {
  /// Whether a missing pin refuses, or is only told.
  public typealias Enforcement = PolicyEntry.Enforcement
  /// What a client does once the registry's statement is expired.
  public typealias WhenExpired = TrustedRegistry.WhenExpired

  /// The registry's URL: `https`, or `http` to a loopback address.
  ///
  /// What is stored belongs to this text, letter for letter: with another spelling an app begins anew, as if it had never
  /// seen a registry. Ship a ``minimumRegistry`` or a ``bundledRegistry`` with a changed one.
  public var endpointUrl: String
  /// The registry's signing key: PEM, base64 of PEM, or base64 of DER (SubjectPublicKeyInfo or
  /// PKCS#1); RSA of at least 1024 bits. Empty where ``rootKeys`` stand alone: no document passes
  /// without a statement then.
  public var signingKeyBase64: String
  /// The root keys of key set 0, in the encodings of ``signingKeyBase64``; RSA, P-256 or Ed25519.
  /// Where there are none, the signing key is the only root.
  public var rootKeys: [String] = []
  /// How many of ``rootKeys`` must sign a key set; needed where there are several, since a forgotten one must
  /// not mean that any of them alone will do.
  public var rootThreshold: Int?
  /// The name that key sets and statements must carry; `nil` for the last component of the URL's
  /// path.
  public var registryName: String?
  /// Whether the very first document must carry a statement; `nil` for the default: yes with
  /// ``rootKeys``, no without.
  ///
  /// - Warning: a first start cannot see that somebody on the way stripped a statement, unless this
  ///   is on or the app ships a registry with one.
  public var requireStatement: Bool?
  /// The oldest registry that is believed: what was published when the app was built (`ssl-pinning verify`
  /// prints it). With other root keys or another ``endpointUrl`` an app begins anew, as if it had never seen
  /// a registry: this keeps what is older than the app out. No document without a statement is believed beside it, unless the
  /// registry was retired since. A retirement that was ended before the app was built is over; 90 days later an app that has
  /// met nothing newer starts without a registry, with `.keepPinning` as well.
  public var minimumRegistry: RegistryMinimum?
  /// A registry that the app ships, as the server publishes it: stands in on a first start without
  /// a network. If it has a version, it is stored at once, and nothing older is believed from then on.
  public var bundledRegistry: Data?
  /// Who vouches for servers before their pins are looked at, the registry's own included.
  public var trust: TrustMode
  /// What happens to hosts that the registry does not list.
  ///
  /// - Warning: anything but the default leaves connections to other hosts to every CA.
  public var unlistedHosts: UnlistedHosts
  /// Whether a missing pin refuses, or is only told. Hosts that a statement enforces are enforced
  /// whatever stands here; bad chains and denied keys are always refused.
  public var enforcement: Enforcement = .enforce
  /// What happens once the registry's statement is expired.
  public var whenExpired: WhenExpired = .refuse
  /// Seconds between two refreshes in the background, spread by a tenth; at least a minute. Also how
  /// young a stored registry must be to start without asking the network.
  public var refreshInterval: TimeInterval = 3600
  /// Where the last good registry is kept between runs.
  public var storage: RegistryStorage
  /// Who is told of failed pins; `nil`, the default, for nobody. Reports are kept in ``storage``
  /// until they are delivered.
  public var reporting: ReportingConfig?
  /// Seconds that one fetch of the registry may take in all.
  public var fetchTimeout: TimeInterval
  /// The most bytes that a registry may have when it is fetched or handed over. What was believed once is read from ``storage``
  /// under another limit: the file may have 64 MiB, or five times this, if that is more. So all processes that share a
  /// storage need one value, and later versions no smaller one: a process with a smaller value drops vanished hosts for all of them.
  public var maximumRegistryBytes: Int

  /// A configuration with one signing key; only the first two have no default.
  public init(
    endpointUrl: String, signingKeyBase64: String, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .refuse, storage: RegistryStorage = .standard,
    fetchTimeout: TimeInterval = 10,
    maximumRegistryBytes: Int = RegistryLimits.standard.maximumBytes
  ) {
    self.endpointUrl = endpointUrl
    self.signingKeyBase64 = signingKeyBase64
    self.trust = trust
    self.unlistedHosts = unlistedHosts
    self.storage = storage
    self.fetchTimeout = fetchTimeout
    self.maximumRegistryBytes = maximumRegistryBytes
  }

  /// A configuration with root keys: `threshold` of them sign key sets, whose online keys sign
  /// statements. A document without a statement is refused unless ``requireStatement`` says
  /// otherwise.
  public init(
    endpointUrl: String, rootKeys: [String], threshold: Int, signingKeyBase64: String = "",
    trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse,
    storage: RegistryStorage = .standard
  ) {
    self.init(
      endpointUrl: endpointUrl, signingKeyBase64: signingKeyBase64, trust: trust,
      unlistedHosts: unlistedHosts, storage: storage)
    self.rootKeys = rootKeys
    rootThreshold = threshold
  }
}

/// Where a client keeps the last good registry, to start from after a restart.
///
/// What is stored is verified again when it is read: no file is trusted for being there.
public enum RegistryStorage: Hashable, Sendable {
  /// Application Support on Apple's systems, excluded from backup; on Linux the directory
  /// `$XDG_STATE_HOME`, or `~/.local/state` (XDG Base Directory Specification), where programs of one user with the same
  /// endpoint and keys share what they have seen.
  ///
  /// - Warning: a process without `HOME` and `XDG_STATE_HOME`, such as a service or a cron job, has no
  ///   such place: nothing is kept then, as with ``none``, and the client says so
  ///   (``PinningEvent/registryNotStored(reason:)``, ``RegistryStatus/storage-swift.property``). Name a
  ///   ``directory(_:)`` there.
  case standard
  /// This directory, by a file URL; made if it is missing. By another URL nothing is kept.
  case directory(URL)
  /// Nowhere.
  ///
  /// - Warning: every start is then a first start, which can be fed an old registry, and needs the
  ///   network or a bundled one.
  case none
}

extension RegistryStorage {
  /// The directory of registries; `nil` for nowhere, for a URL of no file, and if the system names no home for this process.
  var path: String? { path { StateDirectory.registries(of: $0) } }

  /// The directory of failure reports. They tell of one app, so each has its own.
  var reportsPath: String? { path { StateDirectory.standard(app: $0).map { "\($0)/SslPinning" } } }

  private func path(_ standard: (_ app: String) -> String?) -> String? {
    switch self {
    case .none: nil
    case .directory(let url): url.isFileURL ? url.path : nil
    case .standard:
      standard(Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)
    }
  }

  /// Why there is no ``path``, unless the app chose none.
  var whyNowhere: String {
    if case .directory = self { return "the storage's URL is no file URL" }
    return "the system names no home for this process"
  }
}

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
