import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// The tables beside the cases of `Vectors/registry`: one rule of `docs/registry-format.md` a row.
@Suite("The tables of the registry format")
struct RegistryTableTests {
  @Test("patterns are read, or not, as the table says")
  func patterns() throws {
    let rows = try Vectors.rows("registry/patterns.tsv")
    #expect(rows.count >= 100)
    for row in rows {
      try #require(row.count == 2)
      let found = (try? HostPattern(row[0]))?.description ?? "error"
      #expect(found == row[1], "\(row[0])")
    }
  }

  @Test("patterns match hosts as the table says")
  func matches() throws {
    let rows = try Vectors.rows("registry/matches.tsv")
    #expect(rows.count >= 50)
    for row in rows {
      try #require(row.count == 3)
      let found = try HostPattern(row[0]).matches(try HostName(row[1]))
      #expect((found ? "yes" : "no") == row[2], "\(row)")
    }
  }

  @Test("a pin counts as long as the table says")
  func expiries() throws {
    let rows = try Vectors.rows("registry/expiries.tsv")
    #expect(rows.count >= 50)
    for row in rows {
      try #require(row.count == 3)
      var members = ""
      if !row[0].isEmpty { members += ",\"expire\":\(row[0])" }
      if !row[1].isEmpty { members += ",\"date\":\(row[1])" }
      let bytes = try SignedDocument.of(entries: [SignedDocument.entry("a.example", 1, members)])
      func accepts(at clock: Int64) throws -> Bool {
        try TrustedRegistry(accepting: bytes, under: RegistrySimulator.trust(), at: clock)
          .accepts(at: clock)
      }
      if row[2] == "never" {
        #expect(try accepts(at: .max), "\(row)")
      } else {
        let last = try #require(Int64(row[2]))
        #expect(try accepts(at: last), "\(row)")
        #expect(try !accepts(at: last + 1), "\(row)")
      }
    }
  }

  @Test("keys make a key set invalid, or not, as the table says")
  func keys() throws {
    let rows = try Vectors.rows("registry/keys.tsv")
    #expect(rows.count >= 40)
    for row in rows {
      try #require(row.count == 4)
      let role = JSONValue.object([
        "keys": .array([.object(["alg": .string(row[0]), "spki": .string(row[1])])]),
        "threshold": .number(1),
      ])
      let set: JSONObject = [
        "type": .string("keyset"), "registry": .string("example.json"), "epoch": .number(1),
        "root": .object([
          "keys": .array([try AttackScenarioTests.keyJSON(0)]), "threshold": .number(1),
        ]), "online": role,
      ]
      let isValid =
        (try? KeySet(set, registry: "example.json", epoch: 1, crypto: PlatformCrypto.shared)) != nil
      #expect((isValid ? "valid" : "invalid") == row[2], "\(row[3])")
    }
  }

  @Test("signatures count, or not, as the table says")
  func signatures() throws {
    let rows = try Vectors.rows("registry/signatures.tsv")
    #expect(rows.count >= 40)
    let message = [UInt8]("ssl-pinning: a text that is signed".utf8)
    for row in rows {
      try #require(row.count == 5)
      let key = try TrustKey(bytes: try Vectors.bytes("registry/keys/\(row[0])"))
      let role = try KeyRole(
        keys: [
          try RoleKey(
            algorithm: key.algorithm.rawValue, spki: key.spkiDER, crypto: PlatformCrypto.shared)
        ], threshold: 1)
      let list = JSONValue.array([
        .object(["keyId": .string(row[1]), "signature": .string(row[2])])
      ])
      let isMet = role.isMet(
        by: try DocumentSignature.list(list, "signatures"), over: message)
      #expect((isMet ? "valid" : "invalid") == row[3], "\(row[0]): \(row[4])")
    }
  }

  @Test("a document whose bytes are changed is read, or not, as the table says")
  func json() throws {
    let rows = try Vectors.rows("registry/json.tsv")
    #expect(rows.count >= 60)
    let bytes = try Vectors.bytes("registry/documents/members.json")
    let text = String(decoding: bytes, as: UTF8.self)
    for row in rows {
      try #require(row.count == 5)
      let new = row[2].isEmpty ? [] : try #require(StrictBase64.decode(row[2]))
      let changed: [UInt8]
      switch row[0] {
      case "front": changed = new + bytes
      case "behind": changed = bytes + new
      case "member": changed = bytes.dropLast() + [UInt8](",\"x\":".utf8) + new + [0x7d]
      case "replace":
        let parts = text.split(separator: row[1], omittingEmptySubsequences: false)
        try #require(parts.count == 2, "\(row[1])")
        changed = [UInt8](parts[0].utf8) + new + [UInt8](parts[1].utf8)
      case "fill":
        let count = try #require(Int(row[1]))
        changed = bytes + [UInt8](repeating: 0x20, count: count - bytes.count)
      default:
        Issue.record("unknown place \(row[0])")
        continue
      }
      let outcome = try Self.outcome(of: changed)
      #expect(row[3].split(separator: "|").contains(Substring(outcome)), "\(row)")
    }
  }

  @Test("a changed member, signed anew, comes out as the table says")
  func members() throws {
    let rows = try Vectors.rows("registry/members.tsv")
    #expect(rows.count >= 200)
    let whole = try RegistryEnvelope(parsing: Vectors.bytes("registry/documents/members.json"))
      .document
    for row in rows {
      try #require(row.count == 4)
      let value = row[2].isEmpty ? nil : try JSONValue(parsing: [UInt8](row[2].utf8))
      let path = row[1].split(separator: "/").map(String.init)
      var document = whole
      switch row[0] {
      case "document": document = try Self.replacing(path[...], in: document, by: value)
      case "statement":
        let old = try #require(document["statement"]?.objectValue)
        let new = try Self.replacing(path[...], in: old, by: value)
        document["statement"] = .object(new)
        let signer = new["retired"] == .bool(true) ? 0 : 2
        document["statementSignatures"] = .array(
          try SimulatedKeys.signatures(
            [signer], over: DocumentSignature.Domain.statement.bytes(over: new)
          ).map(\.json))
      case "keySet":
        let old = document["keySets"]?.arrayValue?.first?.objectValue?["keySet"]?.objectValue
        let new = try Self.replacing(path[...], in: try #require(old), by: value)
        let signatures = try SimulatedKeys.signatures(
          [0], over: DocumentSignature.Domain.keySet.bytes(over: new))
        document["keySets"] = .array([
          .object(["keySet": .object(new), "signatures": .array(signatures.map(\.json))])
        ])
      default: Issue.record("unknown part \(row[0])")
      }
      #expect(try Self.outcome(of: JSONValue.object(document).canonicalBytes) == row[3], "\(row)")
    }
  }

  /// What a client that believes nothing makes of a document.
  private static func outcome(of bytes: [UInt8]) throws -> String {
    let vector = RegistryVector(name: "", trust: .init(), steps: [])
    switch TrustedRegistry.first(
      bytes, under: try vector.registryTrust(), at: RegistrySimulator.start)
    {
    case .believed: return "accepted"
    case .refused(let error, _): return RegistryVector.outcome(error)
    }
  }

  /// The object with another value at a JSON pointer's place, or without one.
  private static func replacing(
    _ path: ArraySlice<String>, in object: JSONObject, by value: JSONValue?
  ) throws -> JSONObject {
    let name = try #require(path.first)
    var object = object
    guard path.count > 1 else {
      object[name] = value
      return object
    }
    let rest = path.dropFirst()
    switch object[name] {
    case .object(let inner): object[name] = .object(try replacing(rest, in: inner, by: value))
    case .array(var list):
      let index = try #require(rest.first.flatMap { Int($0) })
      try #require(list.indices.contains(index))
      if rest.count == 1 {
        list[index] = try #require(value)
      } else {
        list[index] = .object(
          try replacing(rest.dropFirst(), in: try #require(list[index].objectValue), by: value))
      }
      object[name] = .array(list)
    default: Issue.record("no such place: \(path)")
    }
    return object
  }
}
