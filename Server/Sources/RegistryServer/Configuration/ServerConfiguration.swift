import HTTPServing
import SslPinningRules

/// Everything an operator can set: what to watch, where to keep it, how to sign, where to listen.
///
/// Values only; every one was checked when it was read, so nothing later in the server has to ask
/// whether a file name is safe or a duration positive.
public struct ServerConfiguration: Sendable, Equatable {
  /// The documents to publish, in the order in which their files are first named.
  public var documents: [DocumentConfiguration]
  /// Where to listen, and how.
  public var server: HTTPConfiguration
  /// Where state is kept.
  public var storage: StorageConfiguration
  /// The signing key and the way endpoints are probed.
  public var tls: TLSConfiguration
  /// The least important level that is logged.
  public var logLevel: LogLevel
  /// How events are written.
  public var logFormat: LogFormat
  /// Whether events are written for people to read: indented JSON, aligned text.
  public var logPretty: Bool
  /// What is published beside the server's own answers, and signed with what.
  public var publishing: PublishingConfiguration
  /// The web console.
  public var administration: AdministrationConfiguration
  /// The pin failures that apps report.
  public var reports: ReportsConfiguration
  /// How much is remembered of what was changed.
  public var history = HistoryConfiguration()
  /// Who is told of what begins and what is over.
  public var notify = NotifyConfiguration()
  /// A directory with files that have more of `keys`; `nil` for none.
  public var keysDirectory: String?
  /// Where metrics and probes are served apart; `nil` where they are beside the documents.
  public var metricsListen: ListenAddress?
  /// The file that this was read from, if it has secrets in it: `server.key`, or a password in `storage.dsn`.
  public var secretsFile: String?

  /// A configuration; the defaults are those of the configuration file.
  public init(
    documents: [DocumentConfiguration], server: HTTPConfiguration = HTTPConfiguration(),
    storage: StorageConfiguration = .standard, tls: TLSConfiguration = TLSConfiguration(),
    logLevel: LogLevel = .info, logFormat: LogFormat = .json, logPretty: Bool = false,
    publishing: PublishingConfiguration = PublishingConfiguration(),
    administration: AdministrationConfiguration = AdministrationConfiguration(),
    reports: ReportsConfiguration = ReportsConfiguration(), metricsListen: ListenAddress? = nil
  ) {
    self.documents = documents
    self.server = server
    self.storage = storage
    self.tls = tls
    self.logLevel = logLevel
    self.logFormat = logFormat
    self.logPretty = logPretty
    self.publishing = publishing
    self.administration = administration
    self.reports = reports
    self.metricsListen = metricsListen
  }

  /// A configuration that listens at an address and is otherwise as shipped.
  public init(
    documents: [DocumentConfiguration], listen: ListenAddress,
    storage: StorageConfiguration = .standard, tls: TLSConfiguration = TLSConfiguration(),
    logLevel: LogLevel = .info
  ) {
    self.init(
      documents: documents, server: HTTPConfiguration(listen: listen), storage: storage, tls: tls,
      logLevel: logLevel)
  }
}

extension ServerConfiguration {
  /// Where to listen.
  public var listen: ListenAddress {
    get { server.listen }
    set { server.listen = newValue }
  }

  /// The directory with the key sets that root keys signed.
  public var keySetsDirectory: String {
    publishing.keySets ?? "\(tls.directory)/keysets"
  }
}

/// Where the server listens, and how. Durations are milliseconds.
public struct HTTPConfiguration: Sendable, Equatable {
  /// Where to listen: 127.0.0.1:7500.
  public var listen: ListenAddress
  /// How long a request may take to arrive: 5 s. 0 sets no limit beside the server's own.
  public var readTimeout: Int64
  /// How long an answer may take to be read: 5 s. 0 sets no limit beside the server's own.
  public var writeTimeout: Int64
  /// A PEM file with the certificate and its chain; `nil` means clear text.
  public var certificate: String?
  /// The PEM file with the certificate's private key.
  public var privateKey: String?
  /// What administrators' tokens are signed with; `nil` means with a key that comes from `prv.pem`.
  /// Changing it ends every token there is.
  public var key: Secret?
  /// The proxies in front, whose `X-Forwarded-For` says who calls.
  public var trustedProxies: [AddressNetwork]

  /// Settings; the defaults are those of the configuration file.
  public init(
    listen: ListenAddress = .standard, readTimeout: Int64 = 5000, writeTimeout: Int64 = 5000,
    certificate: String? = nil, privateKey: String? = nil, key: Secret? = nil,
    trustedProxies: [AddressNetwork] = []
  ) {
    self.listen = listen
    self.readTimeout = readTimeout
    self.writeTimeout = writeTimeout
    self.certificate = certificate
    self.privateKey = privateKey
    self.key = key
    self.trustedProxies = trustedProxies
  }
}

/// How much of each document's history is kept.
public struct HistoryConfiguration: Sendable, Equatable {
  /// The most entries: 10 000. 0 sets no limit.
  public var entries = 10_000
  /// How old an entry may become, in milliseconds. 0 sets no limit.
  public var age: Int64 = 0

  /// The defaults of the configuration file.
  public init() {}
}

/// Who is told of what begins and what is over.
public struct NotifyConfiguration: Sendable, Equatable {
  /// The URL that is posted to; often a secret itself. `nil` for nobody.
  public var webhook: Secret?
  /// What messages are signed with.
  public var secret: Secret?
  /// A PEM file with the only anchors of the webhook's chain; `nil` means the system's.
  public var anchors: String?
  /// A program and its arguments that each message is given to; empty for none. There is no shell.
  public var command: [String] = []

  /// The defaults of the configuration file.
  public init() {}
}

/// What is published beside the HTTP server's own answers, and signed with what.
public struct PublishingConfiguration: Sendable, Equatable {
  /// A directory that every document is also written to, for a web server to serve; `nil` means
  /// nowhere.
  public var directory: String?
  /// Whether documents carry a statement (format 2) beside the payload.
  public var statements: Bool
  /// The files of the private keys that sign statements, or of commands that do; none means that `prv.pem` does.
  public var onlineKeys: [String]
  /// The directory with the key sets that root keys signed; `nil` means `keysets` in
  /// ``TLSConfiguration/directory``.
  public var keySets: String?
  /// Where else documents are served: below each of these URLs, under their own names.
  public var mirrors: [String]
  /// What signs in place of `prv.pem`.
  public var signing = SigningConfiguration()

  /// Settings; the defaults are those of the configuration file.
  public init(
    directory: String? = nil, statements: Bool = true, onlineKeys: [String] = [],
    keySets: String? = nil, mirrors: [String] = []
  ) {
    self.directory = directory
    self.statements = statements
    self.onlineKeys = onlineKeys
    self.keySets = keySets
    self.mirrors = mirrors
  }
}

extension PublishingConfiguration {
  /// The URL of a document at a mirror.
  ///
  /// - Parameter base: one of ``mirrors``, with or without its last slash.
  /// - Throws: ``DocumentFault`` where clients would refuse it.
  static func mirror(of file: String, at base: String) throws(DocumentFault) -> RegistryMirror {
    let unreserved = Set("-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    let name = file.utf8.map { byte in
      if unreserved.contains(byte) { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (byte < 16 ? "0" : "") + digits
    }.joined()
    return try RegistryMirror(base + (base.hasSuffix("/") ? "" : "/") + name)
  }

  /// Where else a document is served.
  func mirrors(of file: String) -> [RegistryMirror] {
    // Checked when the configuration was read.
    mirrors.compactMap { try? Self.mirror(of: file, at: $0) }
  }
}

/// The web console and the administration behind it.
public struct AdministrationConfiguration: Sendable, Equatable {
  /// How long a token of an administrator is valid, in milliseconds: 24 h.
  public var tokenTTL: Int64
  /// Whether there is a console at all.
  public var isEnabled: Bool
  /// Whether other machines may send tokens in clear text.
  public var isInsecure: Bool
  /// The ids of tokens that count no more.
  public var revokedTokens: [String]
  /// Where they are served apart; `nil` where they are beside the documents.
  public var listen: ListenAddress?
  /// Whether what puts a key on a list, denies one or ends a denial needs a second person.
  public var needsSecondPerson = false

  /// Settings; the defaults are those of the configuration file.
  public init(
    tokenTTL: Int64 = 86_400_000, isEnabled: Bool = true, isInsecure: Bool = false,
    revokedTokens: [String] = []
  ) {
    self.revokedTokens = revokedTokens
    self.tokenTTL = tokenTTL
    self.isEnabled = isEnabled
    self.isInsecure = isInsecure
  }
}

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
