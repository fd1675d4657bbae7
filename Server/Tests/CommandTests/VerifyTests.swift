import CanonicalJSON
import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("verify")
struct VerifyTests {
  static let pin = "AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4="
  static let documents = ["rsa3072", "rsa4096"].flatMap { folder in
    ["two-keys", "unicode", "extra-members"].map { "interop/\(folder)/\($0).json" }
  }

  static func path(_ vector: String) -> String {
    Vectors.root.appending(path: vector).path(percentEncoded: false)
  }

  static func key(beside document: String) -> String {
    path(document.split(separator: "/").dropLast().joined(separator: "/") + "/pub.pem")
  }

  @Test("accepts documents that other servers signed", arguments: documents)
  func interop(document: String) async throws {
    let outcome = try await Tool.run(
      "verify", "--key", Self.key(beside: document), Self.path(document))
    #expect(outcome.exitCode == 0)
    let other = document.contains("3072") ? "rsa4096" : "rsa3072"
    let wrongKey = try await Tool.run(
      "verify", "--key", Self.path("interop/\(other)/pub.pem"), Self.path(document))
    #expect(wrongKey.exitCode == 1)
    #expect(wrongKey.stderr.contains("signature"))
    #expect(wrongKey.stdout.isEmpty)
  }

  @Test("refuses them with a byte of a pin or a host changed", arguments: documents)
  func changed(document: String) async throws {
    let text = try Vectors.text(document)
    let key = Self.key(beside: document)
    for member in ["\"key\": \"", "\"domainName\": \""] {
      let place = try #require(text.range(of: member)).upperBound
      let byte = text[place]
      let changed = text.replacingCharacters(
        in: place...place, with: byte == "x" ? "y" : "x")
      let outcome = try await Tool.run(
        ["verify", "--key", key, "--json", "-"], input: Array(changed.utf8))
      #expect(outcome.exitCode == 1)
      #expect(try outcome.json.objectValue?["valid"] == .bool(false))
    }
    // The control: the same way in, nothing changed.
    let same = try await Tool.run(["verify", "--key", key, "-"], input: Array(text.utf8))
    #expect(same.exitCode == 0)
  }

  private static func entry(_ member: String, _ value: JSONValue) -> JSONValue {
    var entry: JSONObject = ["domainName": .string("a.example"), "key": .string(pin)]
    entry[member] = value
    return .object(entry)
  }

  @Test("--strict makes every warning a no, and changes nothing where there is none")
  func strict() async throws {
    let key = StrictBase64.encode(try Keys.signing.get().publicKeyDER)
    let good = Keys.entry("a.example", Self.pin)
    for (entries, warning) in [
      ([good], nil),
      ([good, Keys.entry("a..example", Self.pin)], "empty or over-long label"),
      ([good, Keys.entry("https://b.example", Self.pin)], "\"https://b.example\" is a URL"),
      ([good, Keys.entry("b.example", "short")], "the pin of b.example cannot be read"),
      ([good, Keys.entry("c.example", Self.pin, expires: 1_000_000_001)], "no key that counts"),
      // What the reference SDK's decoding and encoding loses, its check of the signature lacks.
      ([Self.entry("fqdn", .null)], "clients in the field cannot read fqdn "),
      ([Self.entry("date", .integer(5))], "clients in the field cannot read date "),
      ([Self.entry("expire", .null)], "clients in the field cannot read expire "),
      ([Self.entry("fqdn", .string("www.a.example"))], nil),
      ([Self.entry("note", .string("new"))], "clients in the field leave out note "),
    ] as [([JSONValue], String?)] {
      let document = try Keys.document(entries)
      for json in [[], ["--json"]] {
        let lenient = try await Tool.run(
          ["verify", "--at", "1800000000", "--key", key, "-"] + json, input: document)
        #expect(lenient.exitCode == 0)
        let strict = try await Tool.run(
          ["verify", "--at", "1800000000", "--strict", "--key", key, "-"] + json, input: document)
        #expect(strict.exitCode == (warning == nil ? 0 : 1))
        #expect(strict.stdout == lenient.stdout && strict.stderr == lenient.stderr)
        guard let warning else { continue }
        #expect((strict.stdout + strict.stderr).replacing("\\\"", with: "\"").contains(warning))
      }
    }
  }

  @Test("never sends a clear-text fetch to a proxy: it stays on this machine")
  func proxy() async throws {
    let document = try Keys.document([Keys.entry("a.example", Self.pin)])
    let registry = try LocalHTTPServer { _ in HTTPResponse(body: document) }
    let proxy = try LocalHTTPServer { _ in HTTPResponse(status: 502) }
    let outcome = try await Tool.run(
      [
        "verify", "--key", StrictBase64.encode(try Keys.signing.get().publicKeyDER),
        "http://127.0.0.1:\(registry.port)/x.json",
      ], environment: ["http_proxy": "http://127.0.0.1:\(proxy.port)"])
    #expect(outcome.exitCode == 0)
    #expect(proxy.counts.connections == 0)
    #expect(registry.requests.count == 1)
  }

  @Test("takes the key in every spelling, as a file and as text")
  func spellings() async throws {
    let signingKey = try Keys.signing.get()
    let document = try Keys.document([Keys.entry("a.example", Self.pin)])
    let der = StrictBase64.encode(signingKey.publicKeyDER)
    let pem = signingKey.publicKeyPEM
    try await withTemporaryDirectory { directory in
      try directory.write(pem, to: "pub.pem")
      let pkcs1 = try await ChildProcess.run(
        "openssl", ["rsa", "-pubin", "-in", directory.path("pub.pem"), "-RSAPublicKey_out"])
      let pkcs1Base64 = pkcs1.stdout.split(separator: "\n").dropFirst().dropLast().joined()
      let spellings = [pem, StrictBase64.encode(Array(pem.utf8)), der, pkcs1.stdout, pkcs1Base64]
      for (index, spelling) in spellings.enumerated() {
        let text = try await Tool.run(["verify", "--key=\(spelling)", "-"], input: document)
        #expect(text.exitCode == 0, "spelling \(index): \(text.stderr)")
        let file = try directory.write(spelling, to: "key\(index)").path(percentEncoded: false)
        let fromFile = try await Tool.run(["verify", "--key", file, "-"], input: document)
        #expect(fromFile.exitCode == 0, "spelling \(index): \(fromFile.stderr)")
      }
      let binary = try directory.write(signingKey.publicKeyDER, to: "pub.der")
      #expect(
        try await Tool.run(
          ["verify", "--key", binary.path(percentEncoded: false), "-"], input: document
        ).exitCode == 0)
    }
    let otherKey = StrictBase64.encode(try Keys.other.get().publicKeyDER)
    #expect(
      try await Tool.run(["verify", "--key", otherKey, "-"], input: document).exitCode == 1)
    let cut = try await Tool.run(
      ["verify", "--key", String(der.dropLast(8)), "-"], input: document)
    #expect(cut.exitCode == 1)
    #expect(cut.speaksProperly)
  }

  @Test("shows host, pin, expiry and state, at the moment asked for")
  func states() async throws {
    let stage = try VerifyStage([
      Keys.entry("a.example", Self.pin, expires: 1_800_000_000),
      Keys.entry("*.b.example", Self.pin),
      Keys.entry("c.example", "not a pin"),
      .object(["key": .string(Self.pin)]),
    ])
    let rows: (Int64) async throws -> [String: [JSONValue?]] = { moment in
      let outcome = try await stage.verify(["--json", "--at", "\(moment)"])
      #expect(outcome.exitCode == 0)
      let keys = try outcome.json.objectValue?["keys"]?.arrayValue ?? []
      return Dictionary(
        uniqueKeysWithValues: keys.compactMap { key in
          guard let key = key.objectValue, let host = key["domainName"]?.stringValue else {
            return nil
          }
          return (host, [key["key"], key["expire"], key["state"], key["counts"]])
        })
    }
    let before = try await rows(1_800_000_000)
    #expect(before.count == 3)
    #expect(
      before["a.example"] == [
        .string(Self.pin), .number(1_800_000_000), .string("ok"), .bool(true),
      ])
    #expect(before["*.b.example"] == [.string(Self.pin), .null, .string("ok"), .bool(true)])
    #expect(before["c.example"] == [.null, .null, .string("unreadable"), .bool(false)])
    let after = try await rows(1_800_000_001)
    #expect(after["a.example"]?.dropFirst(2) == [.string("expired"), .bool(true)])
    let longAfter = try await rows(1_800_000_000 + 26 * 3600 + 1)
    #expect(longAfter["a.example"]?.dropFirst(2) == [.string("expired"), .bool(false)])

    let table = try await stage.verify(["--at", "1800000001"])
    let lines = table.stdout.split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    }
    #expect(
      lines == [
        ["host", "pin", "expires", "state"],
        ["a.example", Self.pin, "2027-01-15T08:00:00Z", "expired"],
        ["*.b.example", Self.pin, "never", "ok"],
        ["c.example", "-", "never", "unreadable"],
      ])
    #expect(table.stderr.contains("entry 3") && table.stderr.contains("c.example"))
  }

  @Test(
    "refuses what is no registry, with the reason",
    arguments: [
      ("", "breaks off"), ("[]", "payload"), ("{}", "payload"),
      (#"{"payload":{"keys":[]}}"#, "signature"),
      (#"{"payload":{"keys":[]},"signature":"A"}"#, "base64"),
      (#"{"payload":{"keys":[]},"signature":"AAAA"}"#, "does not match"),
      (#"{"payload":{"keys":[]},"signature":"AAAA"} x"#, "after the end"),
    ])
  func notARegistry(document: String, says: String) async throws {
    let key = try Keys.signing.get().publicKeyPEM
    let outcome = try await Tool.run(["verify", "--key", key, "-"], input: Array(document.utf8))
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    #expect(outcome.stdout.isEmpty)
  }

  @Test("refuses a signed registry without one usable key", arguments: [0, 1])
  func noUsableKey(count: Int) async throws {
    let stage = try VerifyStage((0..<count).map { _ in Keys.entry("a.example", "") })
    let outcome = try await stage.verify([])
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("no usable key"))
  }

  @Test("does not read more of a file than a registry may have")
  func tooLarge() async throws {
    let stage = try VerifyStage([Keys.entry("a.example", Self.pin)])
    let huge = [UInt8](repeating: UInt8(ascii: " "), count: (4 << 20) + 1)
    try stage.directory.write(huge, to: "registry.json")
    let outcome = try await stage.verify([])
    #expect(outcome.exitCode == 3)
    #expect(outcome.stderr.contains("4194304"))
  }
}

/// A registry in a file, and the key that signed it.
private struct VerifyStage {
  let directory: TemporaryDirectory

  init(_ entries: [JSONValue]) throws {
    directory = try TemporaryDirectory()
    try directory.write(Keys.signing.get().publicKeyPEM, to: "pub.pem")
    try directory.write(Keys.document(entries), to: "registry.json")
  }

  func verify(_ flags: [String]) async throws -> ChildProcess.Outcome {
    try await Tool.run(
      ["verify", "--key", directory.path("pub.pem")] + flags + [directory.path("registry.json")])
  }
}
