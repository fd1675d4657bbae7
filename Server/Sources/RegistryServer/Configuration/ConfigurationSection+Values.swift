/// Values of a section, by kind.
///
/// Numbers and booleans may be quoted: whoever writes configurations by a template quotes all of
/// them, and the field's server reads those.
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
