import CanonicalJSON

/// The members that key sets and statements have in common, read strictly.
extension JSONObject {
  func requireString(_ name: String) throws(DocumentFault) -> String {
    guard let text = self[name]?.stringValue else { throw .member(name) }
    return text
  }

  /// An integer from 0 to 2^53 - 1, the range that all JSON readers agree on (RFC 7493 §2.2).
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

/// `critical`: members that a client must not ignore if it does not know them (as in RFC 7515 section 4.1.11).
/// Other unknown members are signed and ignored; if a new member tightens a pin, such as a port or a second
/// digest, that would make pins looser on every older client.
extension JSONObject {
  /// The names in `critical` that are unknown here, the first ``PolicyEntry/mostDemands`` of them; empty if the member is
  /// missing.
  ///
  /// - Parameter base: the first members of format 2, which every client knows. Members added later must not be in
  ///   it, or clients that know them would refuse a list that names them.
  /// - Throws: ``DocumentFault/member(_:)`` if the list is empty, or names a member twice, a missing member or a
  ///   base member: such a list is a mistake.
  func criticalMembers(beside base: Set<String>) throws(DocumentFault) -> [String] {
    guard let value = self["critical"] else { return [] }
    guard let list = value.arrayValue, !list.isEmpty else { throw .member("critical") }
    var names: [String] = []
    // A thief writes as many names as he likes: comparing each with all others would take minutes.
    var seen: Set<[UInt8]> = []
    for element in list {
      guard let name = element.stringValue, self[name] != nil, !base.contains(name),
        name != "critical", seen.insert(Array(name.utf8)).inserted
      else { throw .member("critical") }
      // All are checked, but not all are told: refusals and events keep them.
      if names.count < PolicyEntry.mostDemands { names.append(name) }
    }
    return names
  }
}
