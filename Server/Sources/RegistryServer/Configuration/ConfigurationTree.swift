/// The sections of a configuration, the values of the environment and of flags in their places.
struct ConfigurationTree {
  /// The directory that the file is in, for what is found beside it by default.
  let directory: String
  /// The directory that state is kept in by default.
  let stateDirectory: String
  let root: ConfigurationSection
  private let sections: [String: ConfigurationSection]

  /// - Parameters:
  ///   - node: the root of the file.
  ///   - replacements: values from beyond the file, by their path.
  init(
    _ node: ConfigurationNode, replacements: [String: ConfigurationNode] = [:],
    directory: String = ".", stateDirectory: String = StorageConfiguration.dataDirectory()
  ) throws(ConfigurationError) {
    self.directory = directory
    self.stateDirectory = stateDirectory
    root = try ConfigurationSection(
      node, path: "", known: Setting.names(in: "") + Setting.sections, replacements: replacements)
    var sections: [String: ConfigurationSection] = [:]
    for name in Setting.sections {
      sections[name] = try root.section(name, known: Setting.names(in: name))
    }
    self.sections = sections
  }

  /// The section that a setting is in.
  func section(of setting: Setting) -> ConfigurationSection { sections[setting.section] ?? root }

  /// Where a setting was set.
  func origin(of setting: Setting) -> ConfigurationOrigin {
    section(of: setting).origin(of: setting.name)
  }
}
