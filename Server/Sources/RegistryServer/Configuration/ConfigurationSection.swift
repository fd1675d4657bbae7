/// One mapping of the configuration, with the path that leads to it: the only place where keys are
/// looked up, so none is read without its kind being checked.
///
/// - A key that is not in the list of known ones is an error, and so is a key that stands twice.
/// - The case of ASCII letters in keys does not count, as in the field's server.
/// - What the environment or a flag sets takes the place of what the file says. What it replaces is
///   not judged: nobody goes by it.
struct ConfigurationSection {
  let path: String
  let origin: ConfigurationOrigin
  private let members: [String: ConfigurationNode]
  private let replacements: [String: ConfigurationNode]

  /// - Parameters:
  ///   - path: of the mapping, empty for the root.
  ///   - replacements: values from beyond the file, by their full path.
  init(
    _ node: ConfigurationNode, path: String, known: [String],
    replacements: [String: ConfigurationNode] = [:]
  ) throws(ConfigurationError) {
    self.path = path
    self.replacements = replacements
    origin = node.origin
    var members: [String: ConfigurationNode] = [:]
    var origins: [String: ConfigurationOrigin] = [:]
    for member in try Self.members(of: node, path: path) {
      let full = path.isEmpty ? member.key : "\(path).\(member.key)"
      guard let name = known.first(where: { Spelling.isSame($0, member.key) }) else {
        throw .unknownKey(
          key: full, at: member.origin, similar: Spelling.nearest(to: member.key, among: known))
      }
      if let first = origins[name] {
        throw .repeatedKey(key: full, at: member.origin, first: first)
      }
      origins[name] = member.origin
      members[name] = member.value
    }
    for name in known {
      if let node = replacements[path.isEmpty ? name : "\(path).\(name)"] { members[name] = node }
    }
    self.members = members
  }

  private static func members(
    of node: ConfigurationNode, path: String
  ) throws(ConfigurationError) -> [ConfigurationNode.Member] {
    guard !node.isNull else { return [] }
    guard case .mapping(let list) = node.content else {
      throw .wrongType(
        key: path.isEmpty ? "the configuration" : path, at: node.origin, expected: "a mapping",
        found: node.kind)
    }
    return list
  }

  /// The path of a member, for messages.
  func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

  /// A member that is there and not empty.
  func node(_ key: String) -> ConfigurationNode? { members[key].flatMap { $0.isNull ? nil : $0 } }

  /// Where a member was set; an empty text sets nothing.
  func origin(of key: String) -> ConfigurationOrigin {
    node(key).flatMap { $0.text == "" ? nil : $0.origin } ?? .standard
  }

  /// A section below this one; an absent one is empty.
  func section(_ key: String, known: [String]) throws(ConfigurationError) -> ConfigurationSection {
    try ConfigurationSection(
      node(key) ?? .null(origin), path: path(of: key), known: known, replacements: replacements)
  }

  /// The elements of a list; an absent one is empty.
  func list(_ key: String) throws(ConfigurationError) -> [ConfigurationNode] {
    guard let node = node(key) else { return [] }
    guard case .sequence(let elements) = node.content else { throw wrongType(key, "a list", node) }
    return elements
  }

  /// The error for a value of this section.
  func invalid(_ key: String, _ reason: String, hint: String? = nil) -> ConfigurationError {
    .invalid(key: path(of: key), at: members[key]?.origin ?? origin, reason: reason, hint: hint)
  }

  /// The error for a value of another kind.
  func wrongType(
    _ key: String, _ expected: String, _ node: ConfigurationNode
  ) -> ConfigurationError {
    .wrongType(key: path(of: key), at: node.origin, expected: expected, found: node.kind)
  }

  /// The error for a value that must be given.
  ///
  /// - Parameter cause: the key because of which it must, whose place is told.
  func missing(_ key: String, because cause: String? = nil, hint: String) -> ConfigurationError {
    .missing(
      key: path(of: key), at: members[cause ?? key]?.origin ?? origin, hint: hint)
  }
}
