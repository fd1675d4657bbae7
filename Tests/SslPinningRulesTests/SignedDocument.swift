import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A key whose signatures anybody can compute: the trust rules ask only whether one is valid.
struct TestKey: SignatureVerifier {
  let secret: [UInt8]

  static let own = TestKey(secret: [1])
  static let other = TestKey(secret: [2])

  func signature(over message: [UInt8]) -> [UInt8] { Digest.sha512(secret + message) }

  func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
    signature == self.signature(over: message)
  }
}

/// A format-1 document signed by a test's own key.
enum SignedDocument {
  /// A document whose payload is this text.
  static func of(payload: String, by key: TestKey = .own, beside members: String = "") throws
    -> [UInt8]
  {
    let signed = try canonicalize([UInt8](payload.utf8))
    let signature = StrictBase64.encode(key.signature(over: signed))
    return [UInt8]("{\"payload\":\(payload),\"signature\":\"\(signature)\"\(members)}".utf8)
  }

  /// A document with these entries.
  static func of(entries: [String], by key: TestKey = .own) throws -> [UInt8] {
    try of(payload: "{\"keys\":[\(entries.joined(separator: ","))]}", by: key)
  }

  /// A document that pins each host to the pin of one byte.
  static func of(_ pins: [(host: String, pin: UInt8)], by key: TestKey = .own) throws -> [UInt8] {
    try of(entries: pins.map { entry($0.host, $0.pin) }, by: key)
  }

  /// One entry.
  static func entry(_ host: String, _ pin: UInt8, _ members: String = "") -> String {
    "{\"domainName\":\"\(host)\",\"key\":\"\(SPKIPin.test(pin).base64)\"\(members)}"
  }
}
