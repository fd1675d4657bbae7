import CanonicalJSON

/// Compares values with the schemas of an OpenAPI document, as far as that document goes. A keyword that
/// this check does not know is a problem: what it left out would be taken for checked.
///
/// Stricter than the standard in one thing: a member that the schema does not name is a problem.
struct SchemaCheck {
  /// `components.schemas`.
  let schemas: JSONObject

  private static let known: Set<String> = [
    "$ref", "type", "required", "properties", "items", "enum", "nullable", "description",
    "default", "minimum", "maximum", "minLength", "maxLength", "pattern", "additionalProperties",
  ]

  /// The keywords of a schema that this check does not know, those of its parts included.
  static func unknownKeywords(in schema: JSONValue?) -> [String] {
    guard let schema = schema?.objectValue else { return [] }
    let parts =
      (schema["properties"]?.objectValue?.map(\.value) ?? []) + [schema["items"] ?? .null]
    return schema.keys.filter { !known.contains($0) } + parts.flatMap(unknownKeywords)
  }

  /// What is wrong with a value, each with its place.
  func problems(_ value: JSONValue, _ schema: JSONValue?, at place: String = "$") -> [String] {
    guard let schema = schema?.objectValue else { return ["\(place): no schema"] }
    if let reference = schema["$ref"] {
      let name = reference.stringValue?.split(separator: "/").last.map(String.init) ?? ""
      guard schema.count == 1, reference.stringValue == "#/components/schemas/\(name)",
        let target = schemas[name]
      else { return ["\(place): the reference \(reference) leads nowhere"] }
      return problems(value, target, at: place)
    }
    let unknown = schema.keys.filter { !Self.known.contains($0) }
    guard unknown.isEmpty else { return ["\(place): the keywords \(unknown) are not known here"] }
    if value == .null, schema["nullable"] == .bool(true) { return [] }
    if let choices = schema["enum"]?.arrayValue, !choices.contains(value) {
      return ["\(place): \(text(value)) is none of \(choices.map(text))"]
    }
    switch (schema["type"]?.stringValue, value) {
    case ("object", .object(let object)): return members(object, schema, place)
    case ("array", .array(let elements)):
      return elements.enumerated().flatMap {
        problems($1, schema["items"], at: "\(place)[\($0)]")
      }
    case ("string", .string(let string)):
      let count = Int64(string.unicodeScalars.count)
      let least = schema["minLength"]?.integerValue ?? 0
      let most = schema["maxLength"]?.integerValue ?? .max
      if let pattern = schema["pattern"]?.stringValue,
        (try? Regex(pattern)).map({ string.wholeMatch(of: $0) == nil }) ?? true
      {
        return ["\(place): \(string) is not as \(pattern)"]
      }
      return (least...most).contains(count) ? [] : ["\(place): \(count) characters"]
    case ("boolean", .bool): return []
    case ("integer", .number(let number)):
      guard let integer = number.integer else { return ["\(place): \(text(value)) is not whole"] }
      let least = schema["minimum"]?.integerValue ?? .min
      let most = schema["maximum"]?.integerValue ?? .max
      return (least...most).contains(integer) ? [] : ["\(place): \(integer) is out of range"]
    case (let type, _): return ["\(place): \(text(value)) is not \(type ?? "typed at all")"]
    }
  }

  private func members(
    _ object: JSONObject, _ schema: JSONObject, _ place: String
  ) -> [String] {
    let properties = schema["properties"]?.objectValue ?? JSONObject()
    let required = schema["required"]?.arrayValue?.compactMap(\.stringValue) ?? []
    let missing = required.filter { object[$0] == nil }.map { "\(place).\($0) is missing" }
    return missing
      + object.flatMap { name, value in
        properties[name] == nil
          ? ["\(place).\(name) is not described"]
          : problems(value, properties[name], at: "\(place).\(name)")
      }
  }

  private func text(_ value: JSONValue) -> String {
    String(decoding: value.canonicalBytes, as: UTF8.self)
  }
}
