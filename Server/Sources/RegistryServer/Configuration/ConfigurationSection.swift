/// One mapping of the configuration, with the path that leads to it: the only place where keys are
/// looked up, so none is read without its kind being checked.
///
/// - A key that is not in the list of known ones is an error, and so is a key that stands twice.
/// - The case of ASCII letters in keys does not count, as in the reference server.
/// - What the environment or a flag sets takes the place of what the file says. What it replaces is
///   not judged: nobody goes by it.
struct ConfigurationSection {
  let path: String
  let origin: ConfigurationOrigin
  private var members: [String: ConfigurationNode]
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
    var findings = ConfigurationFindings()
    var members: [String: ConfigurationNode] = [:]
    var origins: [String: ConfigurationOrigin] = [:]
    for member in try Self.members(of: node, path: path) {
      let full = path.isEmpty ? member.key : "\(path).\(member.key)"
      guard let name = known.first(where: { Spelling.isSame($0, member.key) }) else {
        findings.add(
          .unknownKey(
            key: full, at: member.origin, similar: Spelling.nearest(to: member.key, among: known)))
        continue
      }
      if let first = origins[name] {
        findings.add(.repeatedKey(key: full, at: member.origin, first: first))
        continue
      }
      origins[name] = member.origin
      members[name] = member.value
    }
    try findings.end()
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

  /// Adds elements to a list, behind its own.
  mutating func append(
    _ elements: [ConfigurationNode], to key: String
  ) throws(ConfigurationError) {
    guard !elements.isEmpty else { return }
    members[key] = ConfigurationNode(
      content: .sequence(try list(key) + elements), origin: node(key)?.origin ?? origin)
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

/// Values of a section, by kind.
///
/// Numbers and booleans may be quoted: whoever writes configurations by a template quotes all of
/// them, and the reference server reads those.
extension ConfigurationSection {
  /// A string with something in it. A plain number or boolean is refused: `file: 1e3` and
  /// `file: yes` are texts to one reader and not to the next.
  func string(_ key: String) throws(ConfigurationError) -> String? {
    guard let text = try optionalString(key, orPlain: false) else { return nil }
    guard !text.isEmpty else { throw invalid(key, "it is empty") }
    return text
  }

  /// A string, for which the empty one stands for none.
  ///
  /// - Parameter orPlain: whether a plain number or boolean is a text here, as in a password.
  func optionalString(
    _ key: String, orPlain: Bool = false
  ) throws(ConfigurationError) -> String? {
    guard let node = node(key) else { return nil }
    switch node.content {
    case .text(let text), .scalar(let text, isPlain: false): return text
    case .scalar(let text, isPlain: true)
    where orPlain || (Double(text) == nil && !ConfigurationNode.booleans.contains(text)):
      return text
    default: throw wrongType(key, "a string", node)
    }
  }

  /// A string that is not the empty one, for which that stands for none.
  func nonEmpty(_ key: String) throws(ConfigurationError) -> String? {
    try optionalString(key).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// A whole number in a range.
  func integer(_ key: String, in range: ClosedRange<Int64>) throws(ConfigurationError) -> Int64? {
    guard let node = node(key) else { return nil }
    guard let text = node.text, !text.hasPrefix("+"), let value = Int64(text) else {
      throw wrongType(key, "a whole number", node)
    }
    guard range.contains(value) else {
      throw invalid(key, "\(value) is not within \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// A truth value, in the spellings of Go's `strconv.ParseBool`.
  func boolean(_ key: String) throws(ConfigurationError) -> Bool? {
    guard let node = node(key) else { return nil }
    switch node.text {
    case "true", "True", "TRUE", "t", "T", "1": return true
    case "false", "False", "FALSE", "f", "F", "0": return false
    default: throw wrongType(key, "true or false", node)
    }
  }

  /// One of the named values of a type.
  func choice<Value: RawRepresentable & CaseIterable>(
    _ key: String, of type: Value.Type, called kind: String
  ) throws(ConfigurationError) -> Value? where Value.RawValue == String {
    guard let text = try nonEmpty(key) else { return nil }
    guard let value = Value(rawValue: text.lowercased()) else {
      let names = Value.allCases.map(\.rawValue).joined(separator: ", ")
      throw invalid(key, "no such \(kind): \"\(text)\"", hint: names)
    }
    return value
  }

  /// A duration in milliseconds, in a range.
  func duration(_ key: String, in range: ClosedRange<Int64>) throws(ConfigurationError) -> Int64? {
    guard let node = node(key) else { return nil }
    guard let text = node.text else { throw wrongType(key, "a duration such as 60s", node) }
    guard let value = GoDuration.milliseconds(text) else {
      throw invalid(key, "\"\(text)\" is no duration", hint: "write 60s, 5m or 1h30m")
    }
    guard range.contains(value) else {
      let (least, most) = (
        GoDuration.text(milliseconds: range.lowerBound),
        GoDuration.text(milliseconds: range.upperBound)
      )
      throw invalid(key, "\(text) is not within \(least) to \(most)")
    }
    return value
  }

  /// A list of texts, none of them empty.
  func strings(_ key: String) throws(ConfigurationError) -> [String]? {
    guard node(key) != nil else { return nil }
    var texts: [String] = []
    for (index, element) in try list(key).enumerated() {
      guard let text = element.text, !element.isNull, !text.isEmpty else {
        throw .wrongType(
          key: "\(path(of: key))[\(index)]", at: element.origin, expected: "a string",
          found: element.kind)
      }
      texts.append(text)
    }
    return texts
  }
}

/// The sections of a configuration, the values of the environment and of flags in their places.
struct ConfigurationTree {
  /// The directory that the file is in, for what is found beside it by default.
  let directory: String
  /// The directory that state is kept in by default.
  let stateDirectory: String
  private(set) var root: ConfigurationSection
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
    let top = try ConfigurationSection(
      node, path: "", known: Setting.names(in: "") + Setting.sections, replacements: replacements)
    root = top
    var sections: [String: ConfigurationSection] = [:]
    var findings = ConfigurationFindings()
    for name in Setting.sections {
      sections[name] = findings.gather { () throws(ConfigurationError) in
        try top.section(name, known: Setting.names(in: name))
      }
    }
    try findings.end()
    self.sections = sections
  }

  /// Adds entries to `keys`.
  mutating func append(keys entries: [ConfigurationNode]) throws(ConfigurationError) {
    try root.append(entries, to: Setting.keys.name)
  }

  /// A file in ``directory``.
  func path(of name: String) -> String {
    directory == "." ? name : ConfigurationSources.path(name, in: directory)
  }

  /// The section that a setting is in.
  func section(of setting: Setting) -> ConfigurationSection { sections[setting.section] ?? root }

  /// Where a setting was set.
  func origin(of setting: Setting) -> ConfigurationOrigin {
    section(of: setting).origin(of: setting.name)
  }
}

/// How alike two names are spelled.
enum Spelling {
  /// The candidate within two edits of a mistyped name, letter case aside.
  static func nearest(to name: String, among candidates: [String]) -> String? {
    let scored = candidates.map { ($0, distance(name.lowercased(), $0.lowercased())) }
    return scored.filter { $0.1 <= 2 && $0.1 < $0.0.utf8.count }.min { $0.1 < $1.1 }?.0
  }

  /// Whether two names differ in the case of ASCII letters alone: the reference server reads keys so.
  static func isSame(_ left: String, _ right: String) -> Bool {
    left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  /// Levenshtein's edit distance; names longer than 64 bytes resemble nothing.
  private static func distance(_ left: String, _ right: String) -> Int {
    let (left, right) = (Array(left.utf8), Array(right.utf8))
    guard left.count <= 64 else { return .max }
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
      var diagonal = i
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let substituted = diagonal + (a == b ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(substituted, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row.last ?? .max
  }
}
