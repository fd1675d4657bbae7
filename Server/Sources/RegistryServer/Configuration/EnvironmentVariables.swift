import CanonicalJSON

/// Reads the environment variables of the configuration: `SSL_PINNING_` and a key.
///
/// - An empty variable is as good as none, as in the field's server.
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
    guard setting.isList else { return ConfigurationNode(content: .text(text), origin: origin) }
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
