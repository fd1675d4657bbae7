import CanonicalJSON

/// A value as it was written, with the place where it was: in YAML, in JSON or as a bare text.
struct ConfigurationNode: Sendable {
  enum Content: Sendable {
    /// A scalar's text; only a plain (unquoted) one can be anything but a string.
    case scalar(String, isPlain: Bool)
    /// The text of an environment variable or a flag: what kind of value it is, the key says.
    case text(String)
    case sequence([ConfigurationNode])
    /// Members in the order written. Repeated keys are still in it: the reader reports them with
    /// the path it knows.
    case mapping([Member])
  }

  struct Member: Sendable {
    let key: String
    let origin: ConfigurationOrigin
    let value: ConfigurationNode
  }

  let content: Content
  let origin: ConfigurationOrigin

  /// Nothing, as in an empty file.
  static func null(_ origin: ConfigurationOrigin) -> ConfigurationNode {
    ConfigurationNode(content: .scalar("", isPlain: true), origin: origin)
  }

  /// Whether the node stands for "nothing", as in `log:` without a value (YAML 1.2 §10.2.1.1).
  var isNull: Bool {
    guard case .scalar(let text, isPlain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// The text of a scalar of any kind.
  var text: String? {
    switch content {
    case .scalar(let text, _), .text(let text): text
    case .sequence, .mapping: nil
    }
  }

  /// What the node is, for messages.
  var kind: String {
    switch content {
    case _ where isNull: "empty"
    case .scalar(let text, isPlain: true) where Self.booleans.contains(text): "a boolean"
    case .scalar(let text, isPlain: true) where Int64(text) != nil: "a number"
    case .scalar, .text: "a string"
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }

  /// The plain scalars that YAML 1.2 calls booleans (§10.3.2).
  static let booleans: Set<String> = ["true", "True", "TRUE", "false", "False", "FALSE"]
}

extension ConfigurationNode {
  /// A value of JSON, all of which stands in one place.
  init(_ json: JSONValue, origin: ConfigurationOrigin) {
    self.origin = origin
    switch json {
    case .null: content = .scalar("", isPlain: true)
    case .bool(let value): content = .scalar(value ? "true" : "false", isPlain: true)
    case .number:
      content = .scalar(String(decoding: json.canonicalBytes, as: UTF8.self), isPlain: true)
    case .string(let text): content = .scalar(text, isPlain: false)
    case .array(let elements):
      content = .sequence(elements.map { ConfigurationNode($0, origin: origin) })
    case .object(let object):
      content = .mapping(
        object.map { member in
          Member(
            key: member.key, origin: origin,
            value: ConfigurationNode(member.value, origin: origin))
        })
    }
  }
}
