import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// The two parts of a document that stand at URLs of their own (`docs/registry-format.md`, section 8): its
/// statement, which changes every day, and its payload, which changes with its content.
struct DocumentParts: Sendable {
  /// The payload in canonical form.
  let payload: [UInt8]
  /// SHA-256 of ``payload`` in lower-case hex: where it stands.
  let digest: String
  /// The statement and its signatures; `nil` where there is none, or a retired one. Clients then need the
  /// whole document.
  private let stated: JSONObject?
  private let keySets: [JSONValue]

  init(_ document: JSONObject) {
    payload = (document["payload"] ?? .null).canonicalBytes
    digest = Digest.sha256(payload).map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0" + digits : digits
    }.joined()
    keySets = document["keySets"]?.arrayValue ?? []
    guard let statement = document["statement"], statement.objectValue?["retired"] != .bool(true)
    else {
      stated = nil
      return
    }
    stated = [
      "statement": statement, "statementSignatures": document["statementSignatures"] ?? .null,
    ]
  }

  /// Whether there is a statement to serve alone.
  var hasStatement: Bool { stated != nil }

  /// How many of the key sets a client has that believes those up to `epoch`; all if it believes more.
  func known(upTo epoch: Int64) -> Int { Int(clamping: min(max(0, epoch), Int64(keySets.count))) }

  /// The statement, its signatures, and the key sets behind the first ones.
  func statement(without known: Int = 0) -> [UInt8]? {
    guard var part = stated else { return nil }
    part["keySets"] = .array(Array(keySets.dropFirst(known)))
    return JSONValue.object(part).canonicalBytes
  }
}
