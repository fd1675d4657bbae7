import CanonicalJSON
import Foundation
import TLSTools

/// What a configuration is read from: a file, the environment, flags; later ones win.
///
/// Everything but the file's content is a value, so that the same sources can be read again while the
/// server runs.
public struct ConfigurationSources: Sendable {
  /// The path of the file.
  public var file: String
  /// The directory that `tls` is looked for in by default.
  public var directory: String
  /// Whether a file that is not there is an error. Where it is not, the environment must list `keys`.
  public var isFileRequired: Bool
  /// The environment; what does not begin with ``Setting/variablePrefix`` says where state is kept.
  public var environment: [String: String]
  /// The texts that flags were given.
  public var flags: [Setting: String]

  /// Where the reference server's packages keep the configuration: read if the working directory has
  /// none and no directory is named.
  public static let systemDirectory = "/etc/ssl-pinning"

  /// Sources.
  ///
  /// - Parameters:
  ///   - file: the path or name of the file; `nil` means `config.yaml`, which need not be there.
  ///   - directory: where a relative `file` is; `nil` means the working directory, or
  ///     ``systemDirectory`` where only that has the file.
  public init(
    file: String? = nil, directory: String? = nil,
    environment: [String: String] = ProcessInfo.processInfo.environment,
    flags: [Setting: String] = [:]
  ) {
    (self.file, self.directory) = Self.location(file: file, directory: directory) {
      FileManager.default.fileExists(atPath: $0)
    }
    isFileRequired = file != nil
    self.environment = environment
    self.flags = flags
  }

  /// Where the file is, and the directory that `tls` is looked for in.
  static func location(
    file: String?, directory: String?, exists: (String) -> Bool
  ) -> (file: String, directory: String) {
    let name = file ?? "config.yaml"
    let isSystems =
      directory == nil && !name.hasPrefix("/") && !exists(name)
      && exists(path(name, in: systemDirectory))
    let directory = directory ?? (isSystems ? systemDirectory : ".")
    return (directory == "." ? name : path(name, in: directory), directory)
  }

  /// Reads the file and puts everything together.
  ///
  /// - Throws: ``ConfigurationError``, with the place and a hint.
  public func read() throws(ConfigurationError) -> ServerConfiguration {
    try effective().configuration
  }

  /// As ``read()``, with where each value was set.
  public func effective() throws(ConfigurationError) -> EffectiveConfiguration {
    let replacements = try replacements()
    let bytes: [UInt8]?
    do throws(ConfigurationError) { bytes = try content(replacements) } catch {
      // What is wrong with the command line can be said without the file, and is said first.
      try checkFlags(replacements)
      throw error
    }
    var tree = try ConfigurationTree(
      try bytes.map(YAMLDocument.root) ?? .null(.standard), replacements: replacements,
      directory: directory,
      stateDirectory: stateDirectory)
    if let directory = try tree.root.nonEmpty(Setting.keysDirectory.name) {
      try tree.append(keys: try KeysDirectory.entries(in: directory))
    }
    var configuration = try ServerConfiguration(tree)
    // Whoever could write it would have a program run by whoever reads it.
    if case .file = tree.origin(of: .signingCommand), let reason = FileKeepers.refusal(of: file) {
      throw tree.section(of: .signingCommand).invalid("command", "\(file): \(reason)")
    }
    if Self.hasSecrets(configuration, in: tree) { configuration.secretsFile = file }
    return EffectiveConfiguration(configuration, tree: tree, file: bytes == nil ? nil : file)
  }

  /// Whether the file, rather than the environment or a flag, has a secret.
  private static func hasSecrets(
    _ configuration: ServerConfiguration, in tree: ConfigurationTree
  ) -> Bool {
    Setting.allCases.contains { setting in
      guard case .file = tree.origin(of: setting) else { return false }
      return configuration.value(of: setting, isMasked: true)
        != configuration.value(of: setting, isMasked: false)
    }
  }

  private var stateDirectory: String {
    StorageConfiguration.dataDirectory(environment: environment)
  }

  /// The bytes of the file; `nil` where it need not be there and is not.
  private func content(
    _ replacements: [String: ConfigurationNode]
  ) throws(ConfigurationError) -> [UInt8]? {
    let hasKeys = [Setting.keys, .keysDirectory].contains { replacements[$0.rawValue] != nil }
    if !isFileRequired, hasKeys, isMissing { return nil }
    do throws(SmallFile.Failure) {
      return try SmallFile.read(file, limit: ServerConfiguration.maximumBytes)
    } catch {
      switch error {
      case .unreadable(let reason): throw .unreadable(path: file, reason: reason)
      case .tooLarge(let limit): throw .tooLarge(limit: limit)
      }
    }
  }

  private var isMissing: Bool {
    var status = stat()
    return stat(file, &status) != 0 && errno == ENOENT
  }

  private func checkFlags(
    _ replacements: [String: ConfigurationNode]
  ) throws(ConfigurationError) {
    do throws(ConfigurationError) {
      _ = try ServerConfiguration(
        try ConfigurationTree(
          .null(.standard), replacements: replacements, stateDirectory: stateDirectory))
    } catch {
      let all = if case .several(let all) = error { all } else { [error] }
      for error in all {
        switch error {
        case .wrongType, .invalid: if case .flag = error.origin { throw error }
        default: break
        }
      }
    }
  }

  /// What the environment and the flags set, by the paths of the keys.
  private func replacements() throws(ConfigurationError) -> [String: ConfigurationNode] {
    var values = try EnvironmentVariables.values(in: environment)
    for (setting, text) in flags.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      let origin = ConfigurationOrigin.flag(name: setting.flag ?? setting.rawValue)
      guard !text.isEmpty else {
        throw .invalid(
          key: setting.rawValue, at: origin, reason: "it is empty", hint: "leave the flag out")
      }
      values[setting.rawValue] = ConfigurationNode(content: .text(text), origin: origin)
    }
    // The reference server binds the flag of a second name to the first.
    for (setting, _) in flags {
      guard let first = setting.row.secondNameOf, flags[first] == nil else { continue }
      values[first.rawValue] = values[setting.rawValue]
    }
    return values
  }

  /// A path below a directory, or itself where it is absolute.
  static func path(_ name: String, in directory: String) -> String {
    guard !name.hasPrefix("/") else { return name }
    return directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
  }
}

/// Reads the environment variables of the configuration: `SSL_PINNING_` and a key.
///
/// - An empty variable is as good as none, as in the reference server.
/// - A list is JSON, as in `SSL_PINNING_KEYS=[{"fqdn": "example.com"}]`.
/// - A variable with the prefix that stands for no key is an error: a mistyped name would otherwise
///   leave a default in force without a word. The exceptions are those that others set by their own
///   rules, see ``isForeign(_:value:)``.
enum EnvironmentVariables {
  /// The values that are set, by the paths of their keys.
  static func values(
    in environment: [String: String]
  ) throws(ConfigurationError) -> [String: ConfigurationNode] {
    var values: [String: ConfigurationNode] = [:]
    // Sorted, so that of several offences the same one is told every time.
    for (name, value) in environment.sorted(by: { $0.key < $1.key })
    where name.hasPrefix(Setting.variablePrefix) && !value.isEmpty {
      guard let setting = byVariable[name] else {
        guard isForeign(name, value: value) else {
          throw .unknownVariable(name: name, similar: similar(to: name))
        }
        continue
      }
      values[setting.rawValue] = try node(setting, value)
    }
    return values
  }

  /// Whether a variable with our prefix is somebody else's.
  ///
  /// - For a service named `ssl-pinning`, or one that begins so, Kubernetes sets `…_SERVICE_HOST`,
  ///   `…_SERVICE_PORT` and `…_SERVICE_PORT_NAME` in every container of the namespace, and in the
  ///   manner of Docker's links `…_PORT=tcp://…`, `…_PORT_7500_TCP`, `…_PORT_7500_TCP_ADDR`, `_PORT`,
  ///   `_PROTO` (UDP and SCTP likewise).
  /// - Builds of apps know the registry by `SSL_PINNING_ENDPOINT` and `SSL_PINNING_SIGNING_KEY_B64`.
  static func isForeign(_ name: String, value: String) -> Bool {
    guard name != "SSL_PINNING_ENDPOINT", name != "SSL_PINNING_SIGNING_KEY_B64" else { return true }
    let words = name.dropFirst(Setting.variablePrefix.count)
      .split(separator: "_", omittingEmptySubsequences: false)
    if let place = words.lastIndex(of: "SERVICE") {
      let rest = words[(place + 1)...]
      if rest.first == "PORT" || Array(rest) == ["HOST"] { return true }
    }
    if words.last == "PORT", protocols.contains(where: { value.hasPrefix("\($0.lowercased())://") })
    {
      return true
    }
    // PORT_7500_TCP and, after it, at most one of three words.
    guard let port = words.firstIndex(of: "PORT"), words.count > port + 2 else { return false }
    let rest = words[(port + 3)...]
    return UInt16(words[port + 1]) != nil && protocols.contains(String(words[port + 2]))
      && (rest.isEmpty || (rest.count == 1 && ["PORT", "PROTO", "ADDR"].contains(rest.first)))
  }

  private static let protocols = ["TCP", "UDP", "SCTP"]

  private static let byVariable = Dictionary(
    uniqueKeysWithValues: Setting.allCases.map { ($0.variable, $0) })

  private static func node(
    _ setting: Setting, _ text: String
  ) throws(ConfigurationError) -> ConfigurationNode {
    let origin = ConfigurationOrigin.environment(name: setting.variable)
    guard setting.row.field.isList else {
      return ConfigurationNode(content: .text(text), origin: origin)
    }
    guard text.utf8.count <= ServerConfiguration.maximumBytes else {
      throw .tooLarge(limit: ServerConfiguration.maximumBytes)
    }
    let json: JSONValue
    do throws(JSONError) { json = try JSONValue(parsing: Array(text.utf8)) } catch {
      throw .notJSON(variable: setting.variable, reason: "\(error)")
    }
    return ConfigurationNode(json, origin: origin)
  }

  /// The variable that is spelled much like this one, or is this one with the section left out.
  private static func similar(to name: String) -> String? {
    let known = Setting.allCases.map(\.variable)
    if let near = Spelling.nearest(to: name, among: known) { return near }
    let rest = "_" + name.dropFirst(Setting.variablePrefix.count)
    return known.first { $0.hasSuffix(rest) }
  }
}
