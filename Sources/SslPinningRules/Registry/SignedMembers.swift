import CanonicalJSON

/// The members that key sets and statements have in common, read strictly.
extension JSONObject {
  func requireString(_ name: String) throws(DocumentFault) -> String {
    guard let text = self[name]?.stringValue else { throw .member(name) }
    return text
  }

  /// An integer from 0 to 2^53 - 1: what every reader of JSON agrees on (RFC 7493 §2.2).
  func requireInteger(_ name: String) throws(DocumentFault) -> Int64 {
    guard let number = self[name]?.integerValue, number >= 0 else { throw .member(name) }
    return number
  }

  /// A SHA-256.
  func requireDigest(_ name: String) throws(DocumentFault) -> [UInt8] {
    guard let digest = StrictBase64.decode(try requireString(name)), digest.count == 32 else {
      throw .member(name)
    }
    return digest
  }

  func requireArray(_ name: String) throws(DocumentFault) -> [JSONValue] {
    guard let elements = self[name]?.arrayValue else { throw .member(name) }
    return elements
  }

  /// A document of one type never passes for another's.
  func requireType(_ type: String) throws(DocumentFault) {
    let found = try requireString("type")
    guard found.utf8.elementsEqual(type.utf8) else { throw .otherType(found) }
  }

  /// A document of one registry never passes for another's; names are compared as bytes.
  func requireRegistry(_ name: String) throws(DocumentFault) {
    let found = try requireString("registry")
    guard found.utf8.elementsEqual(name.utf8) else { throw .otherRegistry(found) }
  }
}
