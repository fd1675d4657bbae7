import Foundation
import HTTPServing
import RegistryStores
import SslPinningPlatform
import SslPinningRules

extension ServerConfiguration {
  /// The largest configuration file that is read.
  public static let maximumBytes = 16 << 20

  /// Reads a configuration file, and nothing besides. ``ConfigurationSources`` reads the environment
  /// and flags too.
  ///
  /// Paths inside it are relative to the working directory, as the reference server reads them.
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

  /// - Throws: ``ConfigurationError``, if a value is none, or does not go with another.
  init(_ tree: ConfigurationTree) throws(ConfigurationError) {
    var values = SettingValues()
    values.tls.directory = tree.path(of: "tls")
    var findings = ConfigurationFindings()
    for setting in Setting.allCases {
      findings.gather { () throws(ConfigurationError) in
        try setting.row.field.read(tree.section(of: setting), setting.name, &values)
      }
    }
    var documents: [DocumentConfiguration] = []
    // Without any entry, a mistake elsewhere is worth telling first: `keys` is all that must be given.
    let hasKeys = tree.root.node(Setting.keys.name) != nil
    findings.gather { () throws(ConfigurationError) in
      if hasKeys { documents = try Self.documents(tree.root) }
    }
    // Whether values go with each other is judged of values that are good by themselves.
    try findings.end()
    self = values.configuration
    self.documents = documents
    findings.gather { () throws(ConfigurationError) in
      storage = try StorageConfiguration(values.storage, tree)
    }
    for (check, setting) in Self.checks {
      findings.gather { () throws(ConfigurationError) in try check(self)(tree.section(of: setting))
      }
    }
    try findings.end()
    if !hasKeys { self.documents = try Self.documents(tree.root) }
  }

  private typealias Check = (ServerConfiguration) -> (ConfigurationSection)
    throws(ConfigurationError) -> Void

  /// What values must be to each other, and a setting of the section that tells of it.
  private static var checks: [(Check, Setting)] {
    [
      (checkCertificate, .serverCertificate), (checkClient, .tlsClientCertificate),
      (checkQuorum, .tlsQuorum), (checkMetrics, .metricsListen), (checkConsole, .uiListen),
      (checkSigning, .signingCommand), (checkNotify, .notifyWebhook),
      (checkTerms, .publishStatements), (checkMirrors, .publishMirrors),
      (checkCopies, .publishDirectory),
    ]
  }

  /// A certificate is of no use without its key, nor a key without its certificate.
  private func checkCertificate(_ section: ConfigurationSection) throws(ConfigurationError) {
    if server.certificate != nil, server.privateKey == nil {
      throw section.missing(
        "private_key", because: "certificate", hint: "name the PEM file of the certificate's key")
    }
    if server.certificate == nil, server.privateKey != nil {
      throw section.missing(
        "certificate", because: "private_key",
        hint: "name the PEM file of the certificate and its chain")
    }
  }

  /// The same of the certificate that endpoints are shown.
  private func checkClient(_ section: ConfigurationSection) throws(ConfigurationError) {
    if tls.clientCertificate != nil, tls.clientKey == nil {
      throw section.missing(
        "client_key", because: "client_certificate",
        hint: "name the PEM file of the certificate's key")
    }
    if tls.clientCertificate == nil, tls.clientKey != nil {
      throw section.missing(
        "client_certificate", because: "client_key",
        hint: "name the PEM file of the certificate and its chain")
    }
  }

  /// A command is of no use without the key that tells its signatures, and is no source of the tokens' key: whoever
  /// may use it for a moment could make tokens for ever.
  private func checkSigning(_ section: ConfigurationSection) throws(ConfigurationError) {
    if publishing.signing.command.isEmpty {
      guard publishing.signing.publicKey != nil else { return }
      throw section.missing(
        "command", because: "public_key", hint: "the program that signs with that key")
    }
    if publishing.signing.publicKey == nil {
      throw section.missing(
        "public_key", because: "command", hint: "name the PEM file of the key's public half")
    }
    if administration.isEnabled, server.key == nil {
      throw section.invalid(
        "command", "administrators' tokens are signed with server.key then, and there is none",
        hint: "openssl rand -base64 32 prints one; or ui.enabled: false")
    }
  }

  /// What more must agree on than probe is never settled.
  private func checkQuorum(_ section: ConfigurationSection) throws(ConfigurationError) {
    let points = tls.vantagePoints.count
    guard let quorum = tls.quorum, quorum > points + 1 else { return }
    throw section.invalid(
      "quorum", "\(quorum) are more than probe: \(points) vantage points, and this server",
      hint: "configure more vantage points, or leave it out")
  }

  /// A copy would take the place of the document's key sets: the names are the same.
  private func checkCopies(_ publish: ConfigurationSection) throws(ConfigurationError) {
    @Sendable func resolved(_ path: String) -> [String] {
      URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().pathComponents
    }
    guard let directory = publishing.directory else { return }
    let isSame = CopyReader.at(directory).answer { [keySetsDirectory] in
      resolved(directory) == resolved(keySetsDirectory)
    }
    // One that does not answer is no reason not to start: then their names alone tell.
    let isNamedSo =
      URL(filePath: directory).standardized == URL(filePath: keySetsDirectory).standardized
    guard isSame ?? isNamedSo else { return }
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

  /// Nor can two listeners share one; and one that must refuse all tokens is of no use.
  private func checkConsole(_ section: ConfigurationSection) throws(ConfigurationError) {
    guard let address = administration.listen else { return }
    for (name, other) in [("server.listen", listen), ("metrics.listen", metricsListen)] {
      guard let other, address.collides(with: other) else { continue }
      throw section.invalid(
        "listen", "\(address) and \(name) (\(other)) cannot be had together",
        hint: "another port; without it the console is served beside the documents")
    }
    guard isAdministrationExposed else { return }
    throw section.invalid(
      "listen", "\(address) is not loopback, and tokens would cross the network in clear text",
      hint: "server.certificate and server.private_key, a loopback address, or insecure: true")
  }

  /// What is told names keys and hosts: in clear text it stays on this machine. A short secret can be guessed from
  /// one message.
  private func checkNotify(_ section: ConfigurationSection) throws(ConfigurationError) {
    guard notify.command.first?.isEmpty != true else {
      throw section.invalid(
        "command", "it names no program", hint: "the first word of the list is the program")
    }
    if let webhook = notify.webhook {
      do throws(RegistryURL.Fault) { _ = try RegistryURL(webhook.revealed) } catch {
        throw section.invalid(
          "webhook", error == .clearText ? "it is clear text to another machine" : "it is no URL",
          hint: "write https://host/path; http:// is for this machine")
      }
    } else if notify.secret != nil || notify.anchors != nil {
      throw section.missing("webhook", hint: "write https://host/path, or leave the others out")
    }
    guard let secret = notify.secret, secret.revealed.utf8.count < Secret.leastBytes else {
      return
    }
    throw section.invalid(
      "secret", "it has less than \(Secret.leastBytes) bytes and can be guessed",
      hint: "openssl rand -base64 32 prints a better one")
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
