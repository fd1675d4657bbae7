import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// What the record `.store` says: which store this is, which signing key is in force, and what was stored.
///
///     { "format": 1, "id": "<32 hexadecimal digits>", "key": "<base64 of the public key>",
///       "records": ["www.example.com.json"], "isBeingSealed": false, "returns": 0 }
///
/// - It is sealed like every other record.
/// - A document whose record is gone, and whose name is here, is no document that was never there.
package struct StoreIdentity: Sendable, Equatable {
  /// The record's name.
  package static let recordName = RecordName.store

  /// Tells this store from every other: random.
  package var id: String
  /// The public half of the signing key in force, as SubjectPublicKeyInfo in DER.
  package var publicKeyDER: [UInt8]
  /// The names of the sealed records that were stored.
  package var records: Set<String> = []
  /// Whether the records of a store that had no seal are being sealed: those that stand here and have none
  /// are believed until that is done.
  var isBeingSealed = false
  /// How often this record had gone back (``RecordAge``).
  package var returns: Int64 = 0

  /// A new store's.
  package static func new(under key: SealKey) -> StoreIdentity {
    let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    return StoreIdentity(id: hex(bytes), publicKeyDER: key.publicKeyDER)
  }

  init(id: String, publicKeyDER: [UInt8]) { (self.id, self.publicKeyDER) = (id, publicKeyDER) }

  /// The id of the signing key in force.
  package var key: SPKIPin { SPKIPin(computed: Digest.sha256(publicKeyDER)) }

  /// What a server remembers that saw it under this version.
  package func seen(under version: Int64) -> SealMark.Seen {
    SealMark.Seen(
      id: id, age: RecordAge(returns: returns, version: version), records: records)
  }

  /// Whether a text can be a store's id.
  package static func isID(_ text: String) -> Bool {
    let digits = Set("0123456789abcdef".utf8)
    return text.utf8.count == 32 && digits.isSuperset(of: text.utf8)
  }

  /// Reads the record's content; `nil` if it is none.
  package init?(decoding bytes: [UInt8]) {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue,
      object["format"]?.integerValue == 1, let id = object["id"]?.stringValue, Self.isID(id),
      let key = object["key"]?.stringValue.flatMap(StrictBase64.decode),
      let records = object["records"]?.arrayValue, let isBeingSealed = object["isBeingSealed"],
      let returns = object["returns"]?.integerValue, (0...RecordAge.mostReturns).contains(returns)
    else { return nil }
    self.id = id
    publicKeyDER = key
    self.records = Set(records.compactMap(\.stringValue))
    self.isBeingSealed = isBeingSealed == .bool(true)
    self.returns = returns
  }

  /// The record's content.
  package var encoded: [UInt8] {
    let json: JSONObject = [
      "format": .integer(1), "id": .string(id), "key": .string(StrictBase64.encode(publicKeyDER)),
      "records": .array(records.sorted().map { .string($0) }),
      "isBeingSealed": .bool(isBeingSealed), "returns": .integer(returns),
    ]
    return JSONValue.object(json).canonicalBytes
  }
}

/// The record of the changes that wait for a second person. One that is gone is an empty one: what it had must be
/// proposed again.
package enum StoredProposals {
  package static let recordName = ".proposals"
}
