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

/// `critical`: members that a client must not ignore, though it does not know them (the idea of RFC 7515
/// section 4.1.11). Everything else that is unknown is signed and ignored; what tightens a pin, such as a
/// port or a second digest, would then pin wider on every client that is older than it.
extension JSONObject {
  /// The names in `critical` that are not known here; none where the member is missing.
  ///
  /// - Parameter base: the members that format 2 began with, which every client knows. A member that is added
  ///   later is none of them, also for clients that know it: they would refuse a list that names it.
  /// - Throws: ``DocumentFault/member(_:)`` for a list that is empty, names a member twice, one that is not
  ///   there, or a base member. Who writes such a list did not mean what it says.
  func criticalMembers(beside base: Set<String>) throws(DocumentFault) -> [String] {
    guard let value = self["critical"] else { return [] }
    guard let list = value.arrayValue, !list.isEmpty else { throw .member("critical") }
    var names: [String] = []
    for element in list {
      guard let name = element.stringValue, self[name] != nil, !base.contains(name),
        name != "critical", !names.contains(where: { $0.utf8.elementsEqual(name.utf8) })
      else { throw .member("critical") }
      names.append(name)
    }
    return names
  }
}
