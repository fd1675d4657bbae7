import CYAML
import CanonicalJSON

/// Reads one YAML document into nodes, through libyaml.
///
/// - Aliases cost what they expand to: at most a million nodes and 32 levels are read, so neither a
///   "billion laughs" document nor an alias inside its own anchor runs away.
/// - Depth is counted on events before anything is built: libyaml's own reading takes minutes for a
///   megabyte of brackets.
/// - Exactly one document; explicit tags (`!!int`, `!ruby/object`) are refused, because nothing here
///   would follow them.
enum YAMLDocument {
  static let maximumNodes = 1_000_000
  static let maximumDepth = 32

  /// The root of the one document in `bytes`; an empty stream is a null node.
  static func root(of bytes: [UInt8]) throws(ConfigurationError) -> ConfigurationNode {
    try reading(bytes, checkSize)
    return try reading(bytes, load)
  }

  private static func reading<Value>(
    _ bytes: [UInt8], _ work: (inout yaml_parser_t) throws(ConfigurationError) -> Value
  ) throws(ConfigurationError) -> Value {
    var parser = yaml_parser_t()
    guard yaml_parser_initialize(&parser) == 1 else {
      throw .notYAML(line: 1, reason: "out of memory")
    }
    defer { yaml_parser_delete(&parser) }
    // libyaml keeps the pointer until the parser is deleted, so all of the work is inside.
    let result: Result<Value, ConfigurationError> = bytes.withUnsafeBufferPointer { input in
      yaml_parser_set_input_string(&parser, input.baseAddress, input.count)
      return Result { () throws(ConfigurationError) in try work(&parser) }
    }
    return try result.get()
  }

  private static func load(_ parser: inout yaml_parser_t) throws(ConfigurationError)
    -> ConfigurationNode
  {
    var document = yaml_document_t()
    guard yaml_parser_load(&parser, &document) == 1 else { throw problem(of: parser) }
    defer { yaml_document_delete(&document) }
    guard yaml_document_get_root_node(&document) != nil else {
      return .null(.file(line: 1))
    }
    var walk = Walk(document: document)
    let root = try walk.node(1, depth: 0)
    var second = yaml_document_t()
    guard yaml_parser_load(&parser, &second) == 1 else { throw problem(of: parser) }
    defer { yaml_document_delete(&second) }
    guard yaml_document_get_root_node(&second) == nil else {
      throw .notYAML(
        line: Int(second.start_mark.line) + 1, reason: "a second document in the file")
    }
    return root
  }

  private static func checkSize(_ parser: inout yaml_parser_t) throws(ConfigurationError) {
    var (count, depth) = (0, 0)
    while true {
      var event = yaml_event_t()
      guard yaml_parser_parse(&parser, &event) == 1 else { throw problem(of: parser) }
      defer { yaml_event_delete(&event) }
      count += 1
      switch event.type {
      case YAML_STREAM_END_EVENT: return
      case YAML_SEQUENCE_START_EVENT, YAML_MAPPING_START_EVENT: depth += 1
      case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: depth -= 1
      default: break
      }
      // Collections have two events, and nothing has more.
      guard depth <= maximumDepth, count <= 2 * maximumNodes else {
        throw .notYAML(line: Int(event.start_mark.line) + 1, reason: "too large or too deep")
      }
    }
  }

  private static func problem(of parser: yaml_parser_t) -> ConfigurationError {
    let reason = parser.problem.map { String(cString: $0) } ?? "unknown cause"
    let context = parser.context.map { " " + String(cString: $0) } ?? ""
    return .notYAML(line: Int(parser.problem_mark.line) + 1, reason: reason + context)
  }

  private struct Walk {
    var document: yaml_document_t
    var count = 0

    /// libyaml numbers nodes from 1.
    mutating func node(_ index: Int32, depth: Int) throws(ConfigurationError) -> ConfigurationNode {
      guard let pointer = yaml_document_get_node(&document, index) else {
        throw .notYAML(line: 1, reason: "a node is missing")
      }
      let raw = pointer.pointee
      let line = Int(raw.start_mark.line) + 1
      let origin = ConfigurationOrigin.file(line: line)
      count += 1
      guard count <= YAMLDocument.maximumNodes, depth <= YAMLDocument.maximumDepth else {
        throw .notYAML(line: line, reason: "too large or too deep, aliases included")
      }
      let tag = raw.tag.map { String(cString: $0) } ?? ""
      switch raw.type {
      case YAML_SCALAR_NODE:
        try expect(tag, YAML_STR_TAG, line)
        return ConfigurationNode(
          content: .scalar(
            try text(of: raw), isPlain: raw.data.scalar.style == YAML_PLAIN_SCALAR_STYLE),
          origin: origin)
      case YAML_SEQUENCE_NODE:
        try expect(tag, YAML_SEQ_TAG, line)
        let items = raw.data.sequence.items
        var nodes: [ConfigurationNode] = []
        for item in UnsafeBufferPointer(start: items.start, count: items.top - items.start) {
          nodes.append(try node(item, depth: depth + 1))
        }
        return ConfigurationNode(content: .sequence(nodes), origin: origin)
      case YAML_MAPPING_NODE:
        try expect(tag, YAML_MAP_TAG, line)
        let pairs = raw.data.mapping.pairs
        var members: [ConfigurationNode.Member] = []
        for pair in UnsafeBufferPointer(start: pairs.start, count: pairs.top - pairs.start) {
          let key = try node(pair.key, depth: depth + 1)
          guard case .scalar(let name, _) = key.content else {
            throw .notYAML(line: key.origin.line ?? line, reason: "a key that is \(key.kind)")
          }
          members.append(
            .init(key: name, origin: key.origin, value: try node(pair.value, depth: depth + 1)))
        }
        return ConfigurationNode(content: .mapping(members), origin: origin)
      default: throw .notYAML(line: line, reason: "a node of an unknown kind")
      }
    }

    private func expect(_ tag: String, _ plain: String, _ line: Int) throws(ConfigurationError) {
      guard tag == plain else { throw .notYAML(line: line, reason: "the tag \(tag)") }
    }

    private func text(of node: yaml_node_t) throws(ConfigurationError) -> String {
      let scalar = node.data.scalar
      let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
      guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
        throw .notYAML(line: Int(node.start_mark.line) + 1, reason: "a scalar with a NUL")
      }
      return text
    }
  }
}

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
