import CanonicalJSON
import Foundation
import TestSupport

/// `docs/openapi.yaml`, as far as tests ask it.
struct OpenAPIDocument: Sendable {
  /// One method of one path.
  struct Operation: Sendable {
    let method: String
    let path: String
    let id: String
    let json: JSONObject
    /// The path's parameters and the operation's own, references followed.
    let parameters: [JSONObject]
  }

  let root: JSONObject
  let operations: [Operation]

  static let shared = Result { try OpenAPIDocument() }

  private init() throws {
    let file = Vectors.package.appending(path: "docs/openapi.yaml")
    guard let root = try YAMLValue.parse([UInt8](try Data(contentsOf: file))).objectValue else {
      throw CocoaError(.fileReadCorruptFile)
    }
    self.root = root
    var operations: [Operation] = []
    for (path, methods) in root["paths"]?.objectValue ?? JSONObject() {
      for (method, value) in methods.objectValue ?? JSONObject() {
        let json = value.objectValue ?? JSONObject()
        let parameters = (json["parameters"]?.arrayValue ?? []).compactMap {
          Self.resolve($0, in: root)
        }
        operations.append(
          Operation(
            method: method.uppercased(), path: path, id: json["operationId"]?.stringValue ?? "",
            json: json, parameters: parameters))
      }
    }
    self.operations = operations
  }

  var schemas: SchemaCheck {
    SchemaCheck(
      schemas: root["components"]?.objectValue?["schemas"]?.objectValue ?? JSONObject())
  }

  /// The object that a reference names, or the object itself.
  static func resolve(_ value: JSONValue?, in root: JSONObject) -> JSONObject? {
    guard let object = value?.objectValue else { return nil }
    guard let reference = object["$ref"]?.stringValue else { return object }
    var target: JSONValue? = .object(root)
    for part in reference.split(separator: "/").dropFirst() {
      target = target?.objectValue?[String(part)]
    }
    return target?.objectValue
  }

  /// The operation that answers a method of a path below the server's URL.
  func operation(_ method: String, _ path: String) -> Operation? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return operations.first { operation in
      let pattern = operation.path.split(separator: "/")
      return operation.method == method && pattern.count == parts.count
        && zip(pattern, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
  }

  /// What an answer has that the description does not, or the other way round.
  func problems(_ operation: Operation, status: Int, body: JSONValue) -> [String] {
    guard
      let response = Self.resolve(
        operation.json["responses"]?.objectValue?["\(status)"], in: root)
    else { return ["\(operation.id): \(status) is not described"] }
    return schemas.problems(
      body, response["content"]?.objectValue?["application/json"]?.objectValue?["schema"],
      at: "\(operation.id) \(status)")
  }
}
