import Foundation
import HTTPServing
import SslPinningRules
import TLSTools

extension ServerConfiguration {
  /// The largest configuration file that is read.
  public static let maximumBytes = 16 << 20

  /// Reads a configuration file, and nothing besides. ``ConfigurationSources`` reads the environment
  /// and flags too.
  ///
  /// Paths inside it are relative to the working directory, as the field's server reads them.
  ///
  /// - Throws: ``ConfigurationError``, with the line and a hint.
  public init(file path: String) throws(ConfigurationError) {
    self = try ConfigurationSources(file: path, environment: [:]).read()
  }

  /// Reads a configuration in YAML.
  ///
  /// - Throws: ``ConfigurationError``, with the line and a hint.
  public init(yaml: [UInt8]) throws(ConfigurationError) {
    guard yaml.count <= Self.maximumBytes else { throw .tooLarge(limit: Self.maximumBytes) }
    try self.init(ConfigurationTree(try YAMLDocument.root(of: yaml)))
  }

  /// - Throws: ``ConfigurationError``, where a value is none.
  init(_ tree: ConfigurationTree) throws(ConfigurationError) {
    let log = tree.section(of: .logLevel)
    let ui = tree.section(of: .uiEnabled)
    let reports = tree.section(of: .reportsEnabled)
    let publish = tree.section(of: .publishDirectory)
    let (storage, administration) = (
      try StorageConfiguration(tree), AdministrationConfiguration()
    )
    let maximum = try reports.integer("max_groups", in: 1...1_000_000)
    self.init(
      documents: [], server: try HTTPConfiguration(tree.section(of: .serverListen)),
      storage: storage, tls: try TLSConfiguration(tree),
      logLevel: try log.choice("level", of: LogLevel.self, called: "level") ?? .info,
      logFormat: try log.choice("format", of: LogFormat.self, called: "format") ?? .json,
      logPretty: try log.boolean("pretty") ?? false,
      publishing: PublishingConfiguration(
        directory: try publish.nonEmpty("dir"),
        statements: try publish.boolean("statements") ?? true,
        onlineKeys: try publish.strings("online_keys") ?? [],
        keySets: try publish.nonEmpty("key_sets"),
        mirrors: try publish.strings("mirrors") ?? []),
      administration: AdministrationConfiguration(
        tokenTTL: try ui.duration("token_ttl", in: 1000...3660 * day) ?? administration.tokenTTL,
        isEnabled: try ui.boolean("enabled") ?? administration.isEnabled,
        isInsecure: try ui.boolean("insecure") ?? administration.isInsecure),
      reports: ReportsConfiguration(
        isEnabled: try reports.boolean("enabled") ?? true,
        maximumGroups: maximum.map { Int($0) } ?? ReportsConfiguration().maximumGroups),
      metricsListen: try ListenAddress(tree.section(of: .metricsListen), "listen"))
    try checkMetrics(tree.section(of: .metricsListen))
    // Last: it is the only part that must be given, and a mistake elsewhere is worth telling first.
    documents = try Self.documents(tree.root)
    try checkMirrors(publish)
    try checkCopies(publish)
  }

  /// A copy would take the place of the document's key sets: the names are the same.
  private func checkCopies(_ publish: ConfigurationSection) throws(ConfigurationError) {
    func resolved(_ path: String) -> [String] {
      URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().pathComponents
    }
    guard let directory = publishing.directory,
      resolved(directory) == resolved(keySetsDirectory)
    else { return }
    throw publish.invalid(
      "dir", "\(directory) has the key sets, and copies of documents would take their place",
      hint: "another directory")
  }

  /// One address cannot be listened on twice.
  private func checkMetrics(_ metrics: ConfigurationSection) throws(ConfigurationError) {
    guard let metricsListen, metricsListen.collides(with: listen) else { return }
    throw metrics.invalid(
      "listen",
      metricsListen == listen
        ? "\(metricsListen) is server.listen, too"
        : "\(metricsListen) and server.listen (\(listen)) cannot be had together",
      hint: "another port; without it metrics are served beside the documents")
  }

  /// Clients refuse a statement with a mirror that they cannot use.
  private func checkMirrors(_ section: ConfigurationSection) throws(ConfigurationError) {
    let bases = publishing.mirrors
    guard bases.count <= RegistryMirror.most else {
      throw section.invalid(
        "mirrors", "\(bases.count) are more than a statement may name",
        hint: "\(RegistryMirror.most) at most")
    }
    for document in documents {
      var known: Set<RegistryMirror> = []
      for base in bases {
        let mirror: RegistryMirror
        do throws(DocumentFault) {
          mirror = try PublishingConfiguration.mirror(of: document.file, at: base)
        } catch {
          throw section.invalid(
            "mirrors", "\"\(base)\" is no place that clients could ask",
            hint: "write https://host/path/, without user, query and fragment")
        }
        guard known.insert(mirror).inserted else {
          throw section.invalid("mirrors", "\"\(base)\" stands twice", hint: "keep one of them")
        }
      }
    }
  }
}

/// A day in milliseconds.
let day: Int64 = 86_400_000
