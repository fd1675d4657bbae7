import CanonicalJSON
import SslPinningRules

extension JSONValue {
  /// A number of things.
  static func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }

  /// A number, or null.
  static func nullable(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }

  /// A text, or null.
  static func nullable(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

  /// A pin, or null.
  static func nullable(_ pin: SPKIPin?) -> JSONValue { nullable(pin?.base64) }

  /// A list of texts.
  static func texts(_ texts: some Sequence<String>) -> JSONValue {
    .array(texts.map { .string($0) })
  }
}
