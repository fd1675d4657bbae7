import CanonicalJSON
import Foundation
import TestSupport

@testable import RegistryServer

/// YAML read as JSON, as OpenAPI wants it: plain scalars are numbers, truth values and null.
enum YAMLValue {
  static func parse(_ bytes: [UInt8]) throws -> JSONValue {
    value(try YAMLDocument.root(of: bytes))
  }

  private static func value(_ node: ConfigurationNode) -> JSONValue {
    switch node.content {
    case .mapping(let members):
      return .object(JSONObject(members.map { ($0.key, value($0.value)) }))
    case .sequence(let elements): return .array(elements.map(value))
    case .text(let text), .scalar(let text, isPlain: false): return .string(text)
    case .scalar(let text, isPlain: true):
      if node.isNull { return .null }
      if text == "true" || text == "false" { return .bool(text == "true") }
      return (try? JSONValue(parsing: [UInt8](text.utf8))) ?? .string(text)
    }
  }
}
