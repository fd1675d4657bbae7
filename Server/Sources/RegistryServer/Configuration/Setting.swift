import CanonicalJSON

/// Every key of the configuration, by its path, in the order in which they are shown.
///
/// All else about a setting is its ``row``: a new setting is a case, the row that the compiler then asks for, and the
/// field that the row names. The file's sections, the environment, the flags, `config check`, the comparison at
/// SIGHUP, the help and `docs/configuration.md` go by these.
public enum Setting: String, Sendable, CaseIterable {
  case keys = "keys"
  case keysDirectory = "keys_dir"
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
  case tlsConfirmations = "tls.confirmations"
  case tlsConfirmationInterval = "tls.confirmation_interval"
  case tlsAddresses = "tls.addresses"
  case tlsKeyTypes = "tls.key_types"
  case tlsVantagePoints = "tls.vantage_points"
  case tlsAnchors = "tls.anchors"
  case tlsClientCertificate = "tls.client_certificate"
  case tlsClientKey = "tls.client_key"
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
  case signingCommand = "signing.command"
  case signingPublicKey = "signing.public_key"
  case signingInput = "signing.input"
  case signingTimeout = "signing.timeout"
  case uiEnabled = "ui.enabled"
  case uiTokenTTL = "ui.token_ttl"
  case uiInsecure = "ui.insecure"
  case uiRevokedTokens = "ui.revoked_tokens"
  case uiListen = "ui.listen"
  case uiSecondPerson = "ui.second_person"
  case reportsEnabled = "reports.enabled"
  case reportsMaximumGroups = "reports.max_groups"
  case historyKeep = "history.keep"
  case historyKeepFor = "history.keep_for"
  case metricsListen = "metrics.listen"
  case notifyWebhook = "notify.webhook"
  case notifySecret = "notify.secret"
  case notifyAnchors = "notify.ca"
  case notifyCommand = "notify.command"
}

extension Setting {
  /// What every environment variable of this server begins with.
  public static let variablePrefix = "SSL_PINNING_"

  /// The environment variable: the path in upper case, its dot an underscore.
  public var variable: String {
    Self.variablePrefix + rawValue.uppercased().replacing(".", with: "_")
  }

  /// The flag of `up`, if it has one: the path with dashes, unless its row has another name.
  public var flag: String? {
    row.flag.map { $0.name ?? "--" + rawValue.replacing(/[._]/, with: "-") }
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
  static let sections = allCases.reduce(into: [String]()) { sections, setting in
    if !setting.section.isEmpty, sections.last != setting.section {
      sections.append(setting.section)
    }
  }

  /// The setting that is another name of this one, which wins where both are given.
  var secondName: Setting? { Self.allCases.first { $0.row.secondNameOf == self } }
}

/// A row of the table of settings: its field and kind, its flag, whether a running server takes a change, and what
/// help and documentation say of it.
package struct SettingRow {
  /// Whether a running server takes a change.
  enum Reload {
    /// It does.
    case live
    /// It does not: the old value stays in force until a restart.
    case restart
    /// It does, unless the listener would come to speak TLS or cease to: then it is another listener.
    case liveIfTransportStays
  }

  /// The field, and how its value is read and written.
  let field: SettingField
  /// Whether a running server takes a change.
  let reload: Reload
  /// The flag of `up`.
  package let flag: SettingFlag?
  /// What it is for, in a few words of Markdown.
  let help: String
  /// What documentation says besides; empty for nothing.
  let details: String
  /// The default as documentation has it, if that is not the value of a configuration that says nothing.
  let standard: String?
  /// The setting that this one is another name of, and which wins.
  let secondNameOf: Setting?

  init(
    _ field: SettingField, _ reload: Reload = .live, flag: SettingFlag? = nil,
    secondNameOf: Setting? = nil, standard: String? = nil, help: String, details: String = ""
  ) {
    self.field = field
    self.reload = reload
    self.flag = flag
    self.secondNameOf = secondNameOf
    self.standard = standard
    self.help = help
    self.details = details
  }

  /// What stands for the value in the help.
  package var placeholder: String { field.placeholder }

  /// Whether the flag alone means `true`.
  package var isSwitch: Bool { field.placeholder == SettingKind.boolean.placeholder }

  /// ``help`` for a terminal.
  package var plainHelp: String { help.replacing("`", with: "") }
}

/// A flag of `up`.
package struct SettingFlag: Sendable {
  /// Its name, if that does not follow from the path of the setting.
  var name: String?
  /// A second name, which the first wins over.
  package var other: String?
  /// A short name, as in `-s`.
  package var short: String?

  /// `--section-key`.
  static let byPath = SettingFlag()
}

/// The values of a configuration as settings name them: those of ``ServerConfiguration``, and in place of its
/// storage what is written for it.
@dynamicMemberLookup struct SettingValues {
  var configuration: ServerConfiguration
  var storage: StorageSettings

  /// Nothing set.
  init() { (configuration, storage) = (ServerConfiguration(documents: []), StorageSettings()) }

  /// What `configuration` came from.
  init(_ configuration: ServerConfiguration) {
    (self.configuration, storage) = (configuration, StorageSettings(configuration.storage))
  }

  subscript<Value>(dynamicMember path: WritableKeyPath<ServerConfiguration, Value>) -> Value {
    get { configuration[keyPath: path] }
    set { configuration[keyPath: path] = newValue }
  }
}

/// The field of a setting, whatever its type.
struct SettingField {
  /// What stands for the value in the help.
  let placeholder: String
  /// Whether the value is a list, which an environment variable holds as JSON.
  let isList: Bool
  /// Reads the value, if it is given.
  let read: (ConfigurationSection, String, inout SettingValues) throws(ConfigurationError) -> Void
  /// The value as it would be written; `nil` if nothing depends on it. Only a comparison asks for secrets.
  let value: (_ values: SettingValues, _ isMasked: Bool) -> JSONValue?
  /// Takes the value over from another configuration.
  let keep: (_ values: inout SettingValues, _ old: SettingValues) -> Void

  /// A field that always has a value.
  static func of<Value>(
    _ path: WritableKeyPath<SettingValues, Value>, _ kind: SettingKind<Value>
  ) -> SettingField {
    SettingField(
      placeholder: kind.placeholder, isList: kind.isList,
      read: { (section, key, values) throws(ConfigurationError) in
        if let value = try kind.read(section, key) { values[keyPath: path] = value }
      },
      value: { kind.value(of: $0[keyPath: path], isMasked: $1) },
      keep: { $0[keyPath: path] = $1[keyPath: path] })
  }

  /// A field that may have none.
  ///
  /// - Parameter shown: what counts, if that is more than the field's value.
  static func of<Value>(
    _ path: WritableKeyPath<SettingValues, Value?>, _ kind: SettingKind<Value>,
    shown: KeyPath<ServerConfiguration, Value>? = nil
  ) -> SettingField {
    SettingField(
      placeholder: kind.placeholder, isList: kind.isList,
      read: { (section, key, values) throws(ConfigurationError) in
        if let value = try kind.read(section, key) { values[keyPath: path] = value }
      },
      value: { values, isMasked in
        let value = shown.map { values.configuration[keyPath: $0] } ?? values[keyPath: path]
        return value.map { kind.value(of: $0, isMasked: isMasked) }
      },
      keep: { $0[keyPath: path] = $1[keyPath: path] })
  }

  /// The documents. They are read after all else, being the only part that must be given.
  static var keys: SettingField {
    SettingField(
      placeholder: "", isList: true, read: { _, _, _ in },
      value: { values, _ in .array(values.configuration.documents.flatMap(\.entries)) },
      keep: { $0.configuration.documents = $1.configuration.documents })
  }
}
