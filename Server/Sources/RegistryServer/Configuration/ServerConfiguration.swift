import HTTPServing

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
  /// The signing key and the way endpoints are looked at.
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
