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

  /// Where the field's packages keep the configuration: looked at where the working directory has
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
    let tree = try ConfigurationTree(
      try bytes.map(YAMLDocument.root) ?? .null(.standard), replacements: replacements,
      directory: directory,
      stateDirectory: stateDirectory)
    var configuration = try ServerConfiguration(tree)
    if Self.hasSecrets(configuration, in: tree) { configuration.secretsFile = file }
    return EffectiveConfiguration(configuration, tree: tree, file: bytes == nil ? nil : file)
  }

  /// Whether the file, rather than the environment or a flag, has a secret.
  private static func hasSecrets(
    _ configuration: ServerConfiguration, in tree: ConfigurationTree
  ) -> Bool {
    func isInFile(_ setting: Setting) -> Bool {
      if case .file = tree.origin(of: setting) { true } else { false }
    }
    if configuration.server.key != nil, isInFile(.serverKey) { return true }
    switch configuration.storage {
    case .postgres(let dsn, _, _), .redis(let dsn, _, _):
      return isInFile(.storageDSN) && MaskedDSN(dsn).description != dsn
    case .memory, .sqlite, .fileSystem: return false
    }
  }

  private var stateDirectory: String {
    StorageConfiguration.dataDirectory(environment: environment)
  }

  /// The bytes of the file; `nil` where it need not be there and is not.
  private func content(
    _ replacements: [String: ConfigurationNode]
  ) throws(ConfigurationError) -> [UInt8]? {
    if !isFileRequired, replacements[Setting.keys.rawValue] != nil, isMissing { return nil }
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
      switch error {
      case .wrongType, .invalid: if case .flag = error.origin { throw error }
      default: break
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
    // In the field this flag is bound to the other key.
    if flags[.tlsInterval] == nil, flags[.storageDumpInterval] != nil {
      values[Setting.tlsInterval.rawValue] = values[Setting.storageDumpInterval.rawValue]
    }
    return values
  }

  /// A path below a directory, or itself where it is absolute.
  static func path(_ name: String, in directory: String) -> String {
    guard !name.hasPrefix("/") else { return name }
    return directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
  }
}
