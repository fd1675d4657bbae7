/// A property list as plain values, so that rules over it need no Foundation.
///
/// A boolean is never a number: `<true/>` and `<integer>1</integer>` are two values here, whatever a
/// platform's bridging makes of them.
public enum PropertyListValue: Hashable, Sendable {
  /// Members by key.
  case dictionary([String: PropertyListValue])
  /// Members in order.
  case array([PropertyListValue])
  /// A text.
  case string(String)
  /// `<true/>` or `<false/>`.
  case boolean(Bool)
  /// A whole number.
  case integer(Int64)
  /// Any other number.
  case real(Double)
  /// Bytes.
  case data([UInt8])
  /// A point in time, in seconds since 1970.
  case date(Double)

  /// What the value is, for messages.
  public var kind: String {
    switch self {
    case .dictionary: "a dictionary"
    case .array: "an array"
    case .string: "a string"
    case .boolean: "a boolean"
    case .integer, .real: "a number"
    case .data: "data"
    case .date: "a date"
    }
  }
}
