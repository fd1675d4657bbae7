import CanonicalJSON
import SslPinningRules

/// A signed document as its readers have it, whose signatures are known to be good.
package struct SignedCopy: Sendable {
  /// The whole document.
  package var bytes: [UInt8]
  /// When it was signed, in Unix seconds.
  package var signed: Int64
  /// The number of its statement; `nil` in format 1.
  package var number: RegistryStamp.Version?
  private let parsed: JSONObject?

  /// A copy.
  ///
  /// - Parameter members: its members, if they were parsed just now.
  package init(
    bytes: [UInt8], signed: Int64, number: RegistryStamp.Version?, members: JSONObject? = nil
  ) {
    (self.bytes, self.signed, self.number, parsed) = (bytes, signed, number, members)
  }

  /// A copy with these members.
  package init(bytes: [UInt8], signed: Int64, members: JSONObject) {
    self.init(
      bytes: bytes, signed: signed, number: RegistryStamp.Version(ofStatementIn: members),
      members: members)
  }

  /// Its members; `nil` if it is no document.
  package var members: JSONObject? {
    parsed ?? (try? JSONValue(parsing: bytes))?.objectValue
  }

  /// The keys that it denies.
  var denied: [SPKIPin] {
    said("denied").compactMap { try? SPKIPin(base64: $0) }
  }

  /// The hosts that it says clients may forget.
  var removed: [HostPattern] {
    said("removed").compactMap { try? HostPattern($0) }
  }

  private func said(_ member: String) -> [String] {
    let statement = members?["statement"]?.objectValue
    return (statement?[member]?.arrayValue ?? []).compactMap(\.stringValue)
  }

  /// To be kept: as values, the members take many times the room of the bytes.
  var withoutMembers: SignedCopy { SignedCopy(bytes: bytes, signed: signed, number: number) }

  /// Whether it replaces the document of a record.
  package func isNewer(than state: DocumentState) -> Bool {
    guard !state.document.isEmpty else { return true }
    return bytes != state.document
      && isNewer(
        than: SignedCopy(bytes: state.document, signed: state.signed, number: state.number))
  }

  /// Whether it replaces `other`: numbers never go back, and within one number neither do times.
  package func isNewer(than other: SignedCopy) -> Bool {
    switch (number, other.number) {
    case (let own?, let theirs?) where own != theirs: own > theirs
    case (nil, .some): false
    case (.some, nil): true
    default: signed > other.signed
    }
  }
}

extension DocumentState {
  /// Has this document from now on. A number that is known already is not given a second time, whatever document
  /// arrives late.
  mutating func follow(_ document: SignedCopy) {
    (self.document, signed) = (document.bytes, document.signed)
    number = document.number.map { max($0, number ?? $0) }
  }
}

extension RegistryStamp.Version {
  /// The number of a document's statement; `nil` if it has none.
  package init?(ofStatementIn document: JSONObject) {
    let statement = document["statement"]?.objectValue
    guard let epoch = statement?["epoch"]?.integerValue,
      let version = statement?["version"]?.integerValue
    else { return nil }
    self.init(epoch: epoch, version: version)
  }
}
