import Foundation
import RegistryServer

/// The flags of commands that read the server's configuration.
enum ServerArguments {
  private static let file = Flag.text(
    "--config-file", "FILE", "the configuration; config.yaml by default")
  private static let path = Flag.text(
    "--config-path", "DIR", "where a relative FILE is, and tls; else here, or /etc/ssl-pinning")

  private static let settings: [(setting: Setting, flag: Flag<String>)] = Setting.allCases
    .compactMap { setting in
      guard let name = setting.flag else { return nil }
      let row = setting.row
      var help = row.plainHelp
      if row.isSwitch {
        help += "; true without =BOOL"
      } else if !setting.standard.isEmpty {
        help += "; \(setting.standard) by default"
      }
      var description = Flag.text(name, row.placeholder, help).description
      description.short = row.flag?.short
      if row.isSwitch { description.impliedValue = "true" }
      return (setting, Flag(description: description))
    }

  /// The reference server's names of flags that have another here.
  private static let others: [(setting: Setting, flag: Flag<String>)] = settings.compactMap {
    setting, flag in
    setting.row.flag?.other.map { other in
      (
        setting,
        Flag.text(other, setting.row.placeholder, "as \(flag.description.name), which wins")
      )
    }
  }

  /// Where the configuration is.
  static let places = [file.description, path.description]

  /// All of them, in the order of the help.
  static let descriptions =
    places + (settings + others).map(\.flag.description)

  /// Those that may stand before the command: in the field they belong to the program.
  static let leading = descriptions.filter {
    $0.name.hasPrefix("--config-") || $0.name.hasPrefix("--log-")
  }

  /// What a configuration is to be read from.
  static func sources(_ invocation: Invocation) -> ConfigurationSources {
    var texts: [Setting: String] = [:]
    for (setting, flag) in settings + others { texts[setting] = texts[setting] ?? invocation[flag] }
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
}
