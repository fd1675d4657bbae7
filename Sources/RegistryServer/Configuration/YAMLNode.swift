/// One node of a YAML document, with the line it stands on.
struct YAMLNode: Sendable {
  enum Content: Sendable {
    /// A scalar's text; only a plain (unquoted) one can be anything but a string.
    case scalar(String, isPlain: Bool)
    case sequence([YAMLNode])
    /// Members in the order written. Repeated keys are still in it: the reader reports them with
    /// the path it knows.
    case mapping([Member])
  }

  struct Member: Sendable {
    let key: String
    let line: Int
    let value: YAMLNode
  }

  let content: Content
  /// Counted from 1.
  let line: Int

  /// Whether the node stands for "nothing", as in `log:` without a value (YAML 1.2 §10.2.1.1).
  var isNull: Bool {
    guard case .scalar(let text, isPlain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// What the node is, for messages.
  var kind: String {
    switch content {
    case _ where isNull: "empty"
    case .scalar(let text, isPlain: true) where ["true", "false"].contains(text): "a boolean"
    case .scalar(let text, isPlain: true) where Int64(text) != nil: "a number"
    case .scalar: "a string"
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }
}
