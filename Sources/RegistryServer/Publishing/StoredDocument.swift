import CanonicalJSON
import Pinning

/// What the store keeps of one document: the ledgers it is made of, and the document itself.
///
///     { "format": 1, "signed": 1779192131, "document": "<the signed document>",
///       "ledgers": { "www.example.com:443": [
///         { "pin": "<base64>", "firstSeen": …, "lastSeen": …, "missedSince": … } ] } }
///
/// Whoever can write to the store decides what is published: protect it like the signing key.
struct StoredDocument: Sendable, Equatable {
  var ledgers: [String: DomainLedger]
  /// The signed document; empty before the first.
  var document: [UInt8]
  /// When it was signed, in Unix seconds.
  var signed: Int64

  static let format: Int64 = 1

  init(ledgers: [String: DomainLedger], document: [UInt8] = [], signed: Int64 = 0) {
    self.ledgers = ledgers
    self.document = document
    self.signed = signed
  }

  /// The record's bytes.
  var encoded: [UInt8] {
    let ledgers = self.ledgers.map { id, ledger in
      (id, JSONValue.array(ledger.keys.map(Self.json)))
    }
    return JSONValue.object(
      JSONObject([
        ("format", Self.number(Self.format)), ("signed", Self.number(signed)),
        ("document", .string(String(decoding: document, as: UTF8.self))),
        ("ledgers", .object(JSONObject(ledgers))),
      ])
    ).canonicalBytes
  }

  /// Reads a record. A record of a newer format is an error: overwriting it would lose what an
  /// older program cannot read.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  init(decoding bytes: [UInt8], file: String) throws(StoreError) {
    func failure(_ reason: String) -> StoreError {
      .failed(operation: "reading the state of \(file)", reason: reason)
    }
    let root: JSONValue
    do throws(JSONError) { root = try JSONValue(parsing: bytes) } catch {
      throw failure("\(error)")
    }
    guard let object = root.objectValue, let format = object["format"]?.integerValue else {
      throw failure("it is no record of this program")
    }
    guard format == Self.format else { throw failure("it has the format \(format)") }
    guard let signed = object["signed"]?.integerValue,
      let document = object["document"]?.stringValue, let ledgers = object["ledgers"]?.objectValue
    else { throw failure("a member is missing") }
    self.init(ledgers: [:], document: [UInt8](document.utf8), signed: signed)
    for (id, value) in ledgers {
      guard let list = value.arrayValue else { throw failure("the ledger of \(id) is no list") }
      var keys: [KnownKey] = []
      for entry in list {
        guard let key = Self.key(entry) else { throw failure("a key of \(id) is unreadable") }
        keys.append(key)
      }
      self.ledgers[id] = DomainLedger(keys: keys)
    }
  }

  private static func json(_ key: KnownKey) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("pin", .string(key.pin.base64)), ("firstSeen", number(key.firstSeen)),
      ("lastSeen", number(key.lastSeen)),
    ]
    if let missed = key.missedSince { members.append(("missedSince", number(missed))) }
    return .object(JSONObject(members))
  }

  private static func key(_ value: JSONValue) -> KnownKey? {
    guard let object = value.objectValue, let text = object["pin"]?.stringValue,
      let pin = try? SPKIPin(base64: text), let firstSeen = object["firstSeen"]?.integerValue,
      let lastSeen = object["lastSeen"]?.integerValue
    else { return nil }
    return KnownKey(
      pin: pin, firstSeen: firstSeen, lastSeen: lastSeen,
      missedSince: object["missedSince"]?.integerValue)
  }

  /// Times beyond 2^53 seconds do not occur; one that did would become 0, the oldest.
  private static func number(_ value: Int64) -> JSONValue {
    .number(JSONNumber(exactly: value) ?? 0)
  }
}
