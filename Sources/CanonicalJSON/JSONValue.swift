/// A JSON value with everything in the document: unknown members and their order are kept.
///
/// Two values are equal if and only if their canonical bytes are: strings are compared by their bytes (never
/// by Unicode equivalence), objects in any order of members.
public enum JSONValue: Sendable {
  case null
  case bool(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)

  /// Reads strict I-JSON (RFC 7493): accepts exactly what ``canonicalize(_:limits:)`` accepts.
  ///
  /// - Throws: the first offence, with its byte offset.
  public init(parsing bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
    self = try JSONView(parsing: bytes, limits: limits).value
  }

  /// The RFC 8785 form.
  ///
  /// Recursion goes as deep as the value: for values built by hand, keep to
  /// ``JSONLimits/greatestDepth``.
  public var canonicalBytes: [UInt8] {
    var writer = CanonicalWriter(reserving: 256)
    writer.write(self)
    return writer.bytes
  }
}

extension JSONValue {
  /// The string, if it is one.
  public var stringValue: String? {
    if case .string(let string) = self { string } else { nil }
  }

  /// The truth value, if it is one.
  public var boolValue: Bool? {
    if case .bool(let bool) = self { bool } else { nil }
  }

  /// The elements, if it is an array.
  public var arrayValue: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The members, if it is an object.
  public var objectValue: JSONObject? {
    if case .object(let object) = self { object } else { nil }
  }

  /// The number, if it is one; finite.
  public var doubleValue: Double? {
    if case .number(let number) = self { number.value } else { nil }
  }

  /// The number as an exact integer, if it is one of magnitude up to 2^53 - 1 (RFC 7493 section 2.2).
  public var integerValue: Int64? {
    if case .number(let number) = self { number.integer } else { nil }
  }
}

extension JSONValue: Hashable {
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): ByteString(left) == ByteString(right)
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)): left == right
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .bool(let bool):
      hasher.combine(1)
      hasher.combine(bool)
    case .number(let number):
      hasher.combine(2)
      hasher.combine(number)
    case .string(let string):
      hasher.combine(3)
      hasher.combine(ByteString(string))
    case .array(let elements):
      hasher.combine(4)
      hasher.combine(elements)
    case .object(let object):
      hasher.combine(5)
      hasher.combine(object)
    }
  }
}
