import CanonicalJSON
import SslPinningRules
import TLSTools

/// Signing keys and documents for the tests.
enum Keys {
  /// Made once: a new RSA key takes a while.
  static let signing = Result { try SigningKey.generate(bits: 2048) }
  static let other = Result { try SigningKey.generate(bits: 2048) }

  /// A registry document with these entries.
  static func document(
    _ entries: [JSONValue], signedBy key: SigningKey? = nil
  ) throws -> [UInt8] {
    try RegistryDocument(registry: "", payload: ["keys": .array(entries)])
      .bytes(format1Key: try key ?? signing.get())
  }

  /// An entry that pins a host.
  static func entry(_ host: String, _ pin: String, expires: Int32? = nil) -> JSONValue {
    var entry: JSONObject = ["domainName": .string(host), "key": .string(pin)]
    if let expires { entry["expire"] = .number(JSONNumber(integerLiteral: expires)) }
    return .object(entry)
  }
}
