/// Why a text is not a pin.
public enum PinSyntaxError: Error, Hashable, Sendable {
  /// Not base64, or not the one spelling of its bytes (white space, missing padding, set trailing
  /// bits).
  case notBase64
  /// Base64 of so many bytes instead of 32.
  case wrongLength(Int)
  /// A pin under another hash than SHA-256.
  case unsupportedHash(String)
  /// `pin-sha256="` without its closing quote.
  case unterminatedQuote
}

extension PinSyntaxError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notBase64: "not strict base64; hint: a pin is 44 characters and ends in ="
    case .wrongLength(let count): "\(count) bytes where a SHA-256 has 32"
    case .unsupportedHash(let name): "\(name) pins are not supported; hint: use SHA-256"
    case .unterminatedQuote: "pin-sha256=\" without its closing quote"
    }
  }
}
