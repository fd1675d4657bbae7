/// Every key of the configuration, by its path: the one table that the file's sections, the
/// environment, the flags, the listing of what is in effect and the comparison of two configurations
/// go by.
public enum Setting: String, Sendable, CaseIterable {
  case keys = "keys"
  case logFormat = "log.format"
  case logLevel = "log.level"
  case logPretty = "log.pretty"
  case serverListen = "server.listen"
  case serverReadTimeout = "server.read_timeout"
  case serverWriteTimeout = "server.write_timeout"
  case serverCertificate = "server.certificate"
  case serverPrivateKey = "server.private_key"
  case serverKey = "server.key"
  case serverTrustedProxies = "server.trusted_proxies"
  case storageType = "storage.type"
  case storageDSN = "storage.dsn"
  case storageDumpDirectory = "storage.dump_dir"
  case storageDumpInterval = "storage.dump_interval"
  case storageMaximumOpen = "storage.max_open_conns"
  case storageMaximumIdle = "storage.max_idle_conns"
  case storageMaximumIdleTime = "storage.conn_max_idle_time"
  case storageMaximumLifetime = "storage.conn_max_lifetime"
  case storageInsecure = "storage.insecure"
  case tlsDirectory = "tls.dir"
  case tlsInterval = "tls.dump_interval"
  case tlsTimeout = "tls.timeout"
  case tlsLooks = "tls.looks"
  case tlsLookInterval = "tls.look_interval"
  case tlsAddresses = "tls.addresses"
  case tlsVantagePoints = "tls.vantage_points"
  case tlsAnchors = "tls.anchors"
  case tlsApproval = "tls.approval"
  case tlsGrace = "tls.grace"
  case tlsQuorum = "tls.quorum"
  case tlsIssuers = "tls.issuers"
  case tlsMassChange = "tls.mass_change"
  case publishDirectory = "publish.dir"
  case publishStatements = "publish.statements"
  case publishOnlineKeys = "publish.online_keys"
  case publishKeySets = "publish.key_sets"
  case publishMirrors = "publish.mirrors"
  case uiEnabled = "ui.enabled"
  case uiTokenTTL = "ui.token_ttl"
  case uiInsecure = "ui.insecure"
  case reportsEnabled = "reports.enabled"
  case reportsMaximumGroups = "reports.max_groups"
  case metricsListen = "metrics.listen"
}

extension Setting {
  /// What every environment variable of this server begins with.
  public static let variablePrefix = "SSL_PINNING_"

  /// The environment variable: the path in upper case, its dot an underscore.
  public var variable: String {
    Self.variablePrefix + rawValue.uppercased().replacing(".", with: "_")
  }

  /// The flag of `up`, where it has one: the path with dashes, and `--listen` alone for the address.
  public var flag: String? {
    switch self {
    case .serverListen: "--listen"
    case .logFormat, .logLevel, .logPretty, .storageType, .storageDSN, .storageDumpDirectory,
      .storageDumpInterval, .storageMaximumOpen, .storageMaximumIdle, .storageMaximumIdleTime,
      .storageMaximumLifetime, .tlsInterval, .publishDirectory, .serverReadTimeout,
      .serverWriteTimeout, .metricsListen:
      "--" + rawValue.replacing(".", with: "-").replacing("_", with: "-")
    default: nil
    }
  }

  /// Whether the value is a list, which an environment variable holds as JSON.
  var isList: Bool {
    switch self {
    case .keys, .serverTrustedProxies, .tlsVantagePoints, .tlsIssuers, .publishOnlineKeys,
      .publishMirrors:
      true
    default: false
    }
  }

  /// The section, as in `storage`; empty for a key of the root.
  var section: String { name == rawValue ? "" : String(rawValue.dropLast(name.count + 1)) }

  /// The key within its section, as in `dump_dir`.
  var name: String { rawValue.split(separator: ".").last.map(String.init) ?? rawValue }

  /// The keys of a section.
  static func names(in section: String) -> [String] {
    allCases.filter { $0.section == section }.map(\.name)
  }

  /// The sections, as they stand beside `keys` in the root.
  static let sections = ["log", "server", "storage", "tls", "publish", "ui", "reports", "metrics"]
}
