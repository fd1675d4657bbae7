import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// The vectors that belong to `docs/registry-format.md`.
@Suite("The vectors of the registry format")
struct RegistryVectorTests {
  @Test("the table is whole, and every document in it is used")
  func whole() throws {
    let cases = try RegistryVector.all()
    #expect(cases.count >= 20)
    #expect(Set(cases.map(\.name)).count == cases.count)
    let used = Set(cases.flatMap(\.steps).flatMap { [$0.document, $0.payload].compactMap(\.self) })
      .union(try VerdictVector.all().flatMap { ($0.before ?? []) + [$0.document] })
      .union(["members.json"])
    #expect(used == Set(try Vectors.files(in: "registry/documents")))
    // Accepting and refusing are both there, each refusal at least once.
    let outcomes = Set(cases.flatMap(\.steps).map(\.outcome))
    #expect(
      outcomes.isSuperset(of: [
        "accepted", "malformed", "bad-signature", "no-usable-key", "key-set-invalid",
        "key-set-expired", "statement-invalid", "statement-expired", "rolled-back",
        "other-payload", "statement-stripped", "statement-required", "no-format-1-key",
        "client-too-old", "minimum-required", "incomplete",
      ]))
  }

  @Test(
    "come out as the table says, for a client that goes on and for one that is always restarted",
    arguments: try RegistryVector.all(), [false, true])
  func outcome(vector: RegistryVector, restarts: Bool) throws {
    var client = RegistryVectorClient(trust: try vector.registryTrust())
    for (index, step) in vector.steps.enumerated() {
      let (outcome, text) = try client.take(step)
      let note = Comment(rawValue: "step \(index + 1): \(text)")
      #expect(outcome == step.outcome, note)
      #expect(try client.differences(from: step) == [], note)
      guard restarts else { continue }
      try client.restart(at: step.clock)
      #expect(try client.differences(from: step) == [], note)
    }
  }

  @Test("the signed bytes are what the specification says")
  func signedBytes() throws {
    let document = try RegistryEnvelope(parsing: Vectors.bytes("registry/documents/first.json"))
      .document
    let statement = try #require(document["statement"]?.objectValue)
    let set = try #require(
      document["keySets"]?.arrayValue?.first?.objectValue?["keySet"]?.objectValue)
    let expected = try Vectors.rows("registry/signed-bytes.tsv")
    #expect(expected.count == 3)
    for (what, bytes) in [
      ("statement", DocumentSignature.Domain.statement.bytes(over: statement)),
      ("keySet", DocumentSignature.Domain.keySet.bytes(over: set)),
      ("payload", try #require(document["payload"]).canonicalBytes),
    ] {
      let row = try #require(expected.first { $0.first == what })
      #expect(row.count == 2)
      #expect(
        row.last
          == Digest.sha256(bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
          .joined())
    }
  }

  @Test("every signature of a document stands before a program that shares nothing with this one")
  func openssl() async throws {
    let openssl = try OpenSSLCommand()
    let text = String(decoding: try Vectors.bytes("registry/documents/first.json"), as: UTF8.self)
    func between(_ start: String, _ end: String) throws -> String {
      let from = try #require(text.range(of: start)).upperBound
      return String(
        text[from..<(try #require(text.range(of: end, range: from..<text.endIndex)).lowerBound)])
    }
    // The document is written so that its parts are canonical as they stand.
    let payload = try between("{\"payload\":", ",\"signature\"")
    let statement = try between("\"statement\":", ",\"statementSignatures\"")
    let keySet = try between("\"keySet\":", ",\"signatures\"")
    let format1 = try between(",\"signature\":\"", "\"")
    let online = try between("\"statementSignatures\":[{\"keyId\":", "}]")
    let root = try between("\"signatures\":[{\"keyId\":", "}]")
    func signature(_ entry: String) throws -> [UInt8] {
      let quoted = try #require(entry.split(separator: "\"").last)
      return try #require(StrictBase64.decode(String(quoted)))
    }
    for (key, message, bytes) in [
      ("rsa", payload, try #require(StrictBase64.decode(format1))),
      ("1", "ssl-pinning statement v2\0" + statement, try signature(online)),
      ("0", "ssl-pinning keyset v2\0" + keySet, try signature(root)),
    ] {
      let file = SimulatedKeys.file("\(key).pub.pem").path(percentEncoded: false)
      var options = ["pkeyutl", "-verify", "-pubin", "-inkey", file, "-rawin", "-in", "message"]
      options += ["-sigfile", "signature"]
      if key != "0" { options += ["-digest", key == "rsa" ? "sha512" : "sha256"] }
      try openssl.write([UInt8](message.utf8), to: "message")
      try openssl.write(bytes, to: "signature")
      try await openssl.run(options)
      try openssl.write([UInt8](message.utf8) + [0x20], to: "message")
      await #expect(throws: (any Error).self) { try await openssl.run(options) }
    }
  }
}
