/// One mapping of the configuration, with the path that leads to it: the only place where keys are
/// looked up, so none is read without its kind being checked.
///
/// - A key that is not in the list of known ones is an error, and so is a key that stands twice.
struct ConfigurationSection {
  let path: String
  let line: Int
  private let members: [String: YAMLNode]

  /// - Parameter path: of the mapping, empty for the root.
  init(_ node: YAMLNode, path: String, known: [String]) throws(ConfigurationError) {
    self.path = path
    line = node.line
    guard !node.isNull else {
      members = [:]
      return
    }
    guard case .mapping(let list) = node.content else {
      throw .wrongType(
        key: path.isEmpty ? "the configuration" : path, line: node.line, expected: "a mapping",
        found: node.kind)
    }
    var members: [String: YAMLNode] = [:]
    var lines: [String: Int] = [:]
    for member in list {
      let full = path.isEmpty ? member.key : "\(path).\(member.key)"
      guard known.contains(member.key) else {
        throw .unknownKey(
          key: full, line: member.line, similar: Self.similar(to: member.key, in: known))
      }
      if let firstLine = lines[member.key] {
        throw .repeatedKey(key: full, line: member.line, firstLine: firstLine)
      }
      lines[member.key] = member.line
      members[member.key] = member.value
    }
    self.members = members
  }

  /// The path of a member, for messages.
  func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

  /// A member that is there and not empty.
  func node(_ key: String) -> YAMLNode? { members[key].flatMap { $0.isNull ? nil : $0 } }

  /// A section below this one; an absent one is empty.
  func section(_ key: String, known: [String]) throws(ConfigurationError) -> ConfigurationSection {
    let empty = YAMLNode(content: .scalar("", isPlain: true), line: line)
    return try ConfigurationSection(node(key) ?? empty, path: path(of: key), known: known)
  }

  /// The elements of a list; an absent one is empty.
  func list(_ key: String) throws(ConfigurationError) -> [YAMLNode] {
    guard let node = node(key) else { return [] }
    guard case .sequence(let elements) = node.content else { throw wrongType(key, "a list", node) }
    return elements
  }

  /// A string with something in it. A plain number or boolean is refused: `file: 1e3` and
  /// `file: yes` are texts to one reader and not to the next.
  func string(_ key: String) throws(ConfigurationError) -> String? {
    guard let node = node(key) else { return nil }
    guard case .scalar(let text, let isPlain) = node.content,
      !isPlain || (Double(text) == nil && text != "true" && text != "false")
    else { throw wrongType(key, "a string", node) }
    guard !text.isEmpty else { throw invalid(key, "it is empty") }
    return text
  }

  /// A whole number in a range.
  func integer(_ key: String, in range: ClosedRange<Int64>) throws(ConfigurationError) -> Int64? {
    guard let node = node(key) else { return nil }
    guard case .scalar(let text, isPlain: true) = node.content, !text.hasPrefix("+"),
      let value = Int64(text)
    else { throw wrongType(key, "a whole number", node) }
    guard range.contains(value) else {
      throw invalid(key, "\(value) is not within \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// A duration in milliseconds, in a range.
  func duration(_ key: String, in range: ClosedRange<Int64>) throws(ConfigurationError) -> Int64? {
    guard let node = node(key) else { return nil }
    guard case .scalar(let text, _) = node.content else {
      throw wrongType(key, "a duration such as 60s", node)
    }
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

  /// The error for a value of this section.
  func invalid(_ key: String, _ reason: String, hint: String? = nil) -> ConfigurationError {
    .invalid(key: path(of: key), line: members[key]?.line ?? line, reason: reason, hint: hint)
  }

  private func wrongType(
    _ key: String, _ expected: String, _ node: YAMLNode
  ) -> ConfigurationError {
    .wrongType(key: path(of: key), line: node.line, expected: expected, found: node.kind)
  }

  /// The known key within two edits of a mistyped one, letter case aside.
  private static func similar(to key: String, in known: [String]) -> String? {
    let scored = known.map { ($0, distance(key.lowercased(), $0.lowercased())) }
    return scored.filter { $0.1 <= 2 && $0.1 < $0.0.utf8.count }.min { $0.1 < $1.1 }?.0
  }

  /// Levenshtein's edit distance; keys longer than 64 bytes resemble nothing.
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
