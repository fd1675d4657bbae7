import CanonicalJSON

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
