import Foundation
import RegistryServer

/// The flags of commands that read the server's configuration.
enum ServerArguments {
  private static let file = Flag.text(
    "--config-file", "FILE", "the configuration; config.yaml by default")
  private static let path = Flag.text(
    "--config-path", "DIR", "where a relative FILE is, and tls; else here, or /etc/ssl-pinning")

  /// The reference server's name of `--listen`.
  private static let serverListen = Flag.text("--server-listen", "ADDR", "as --listen, which wins")

  private static let settings: [(setting: Setting, flag: Flag<String>)] = Setting.allCases
    .compactMap { setting in
      guard let name = setting.flag, let (placeholder, help) = help(setting) else { return nil }
      var description = Flag.text(name, placeholder, help).description
      if setting == .storageType { description.short = "-s" }
      if setting == .logPretty { description.impliedValue = "true" }
      return (setting, Flag(description: description))
    }

  /// Where the configuration is.
  static let places = [file.description, path.description]

  /// All of them, in the order of the help.
  static let descriptions =
    places + settings.map(\.flag.description)
    + [serverListen.description]

  /// Those that may stand before the command: in the field they belong to the program.
  static let leading = descriptions.filter {
    $0.name.hasPrefix("--config-") || $0.name.hasPrefix("--log-")
  }

  /// What a configuration is to be read from.
  static func sources(_ invocation: Invocation) -> ConfigurationSources {
    var texts: [Setting: String] = [:]
    for (setting, flag) in settings { texts[setting] = invocation[flag] }
    texts[.serverListen] = texts[.serverListen] ?? invocation[serverListen]
    return ConfigurationSources(
      file: invocation[file], directory: invocation[path], flags: texts)
  }

  /// Reads it.
  ///
  /// - Throws: what the command line says wrongly is wrong usage, what was read and is no good is
  ///   "no", and a file that is not there is "could not".
  static func configuration(
    _ sources: ConfigurationSources
  ) throws(CommandFailure) -> EffectiveConfiguration {
    do throws(ConfigurationError) { return try sources.effective() } catch {
      switch (error, error.origin) {
      case (.unreadable, _):
        throw .couldNotFindOut("\(error); hint: --config-file names the configuration")
      case (_, .flag): throw .usage("\(error)")
      default: throw .no(error.description(file: sources.file))
      }
    }
  }

  /// Whether the command line says where the configuration is.
  static func isNamed(_ invocation: Invocation) -> Bool {
    invocation[file] != nil || invocation[path] != nil
  }

  /// The configuration that ``up`` would read here; `nil` if there is none and none was named.
  static func configurationAtHand(
    _ invocation: Invocation
  ) throws(CommandFailure) -> EffectiveConfiguration? {
    let sources = sources(invocation)
    let isThere =
      isNamed(invocation) || InputFile.exists(sources.file)
      || sources.environment[Setting.variablePrefix + "KEYS"] != nil
    return isThere ? try configuration(sources) : nil
  }

  private static func help(_ setting: Setting) -> (placeholder: String, help: String)? {
    switch setting {
    case .serverListen: ("ADDR", "listen here; 127.0.0.1:7500 by default")
    case .serverReadTimeout: ("TIME", "for a request to arrive; 5s by default")
    case .serverWriteTimeout: ("TIME", "for an answer to be read; 5s by default")
    case .metricsListen: ("ADDR", "metrics and probes here, and metrics nowhere else")
    case .logFormat: ("FORMAT", "json or text")
    case .logLevel: ("LEVEL", "debug, info, warn or error")
    case .logPretty: ("BOOL", "indented JSON, aligned text; true without =BOOL")
    case .storageType: ("TYPE", "sqlite, memory, fs, redis or postgres")
    case .storageDSN: ("DSN", "the file or URL of the store")
    case .storageDumpDirectory: ("DIR", "the directory of the fs store")
    case .storageDumpInterval: ("TIME", "as --tls-dump-interval, which wins")
    case .storageMaximumOpen: ("N", "most connections to a database; 0 for no limit")
    case .storageMaximumIdle: ("N", "most idle connections that are kept")
    case .storageMaximumIdleTime: ("TIME", "how long an idle connection is kept")
    case .storageMaximumLifetime: ("TIME", "how long any connection is kept")
    case .tlsInterval: ("TIME", "within which a changed key is published")
    case .publishDirectory: ("DIR", "write every document here too")
    default: nil
    }
  }
}
