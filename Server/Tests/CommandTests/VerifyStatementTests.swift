import CanonicalJSON
import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("verify, of format 2")
struct VerifyStatementTests {
  @Test("shows what it believes, to people and to programs")
  func report() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    let at = "--at \(Format2Stage.issued + 5)"
    let shown = try await stage.run("verify --key pub.pem \(at) app.json")
    #expect(shown.exitCode == 0 && shown.stderr.isEmpty, "\(shown.stderr)")
    let rows = shown.stdout.split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
    for row in [
      "format 2", "registry app.json", "statement 1.1", "issued 2027-01-15T08:00:00Z",
      "expires 2027-04-15T08:00:00Z", "key set 1", "hosts 1", "denied 1", "removed 1", "b.example",
      "*.a.example: match any, enforced, CA \(Format2Stage.otherPin)", "format 1 valid",
      "*.a.example \(Format2Stage.pin) 2030-03-17T17:46:40Z ok",
    ] { #expect(rows.contains(row), "\(row) in \(shown.stdout)") }
    let json = try #require(
      try await stage.run("verify --json --key pub.pem \(at) app.json").json.objectValue)
    #expect(json["valid"] == .bool(true) && json["format"] == .number(2))
    #expect(json["statement"] == .object(try stage.statement()))
    #expect(json["keySetEpoch"] == .number(1))
    #expect(json["format1Signature"] == .string("valid"))
    // A document of format 1 looks as it always did.
    try await stage.must("sign --key prv.pem payload.json --out plain.json")
    let plain = try await stage.run("verify --key pub.pem plain.json")
    #expect(plain.exitCode == 0 && plain.stdout.hasPrefix("host "))
  }

  @Test("shows the mirrors, which --mirror gives and the next signing keeps")
  func mirrors() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument(
      "--mirror https://m.example/app.json --mirror https://[::1]:8443/x/app.json")
    let at = "--at \(Format2Stage.issued + 5)"
    let shown = try await stage.run("verify --key pub.pem \(at) app.json")
    for text in ["mirrors", "https://m.example/app.json", "https://[::1]:8443/x/app.json"] {
      #expect(shown.stdout.contains(text), "\(shown.stdout)")
    }
    try await stage.must(
      "sign --key prv.pem --online-key online0.pem app.json --out app.json --issued"
        + " \(Format2Stage.issued + 1)")
    let json = try await stage.run("verify --json --key pub.pem \(at) app.json").json.objectValue
    #expect(
      json?["mirrors"]
        == .array([.string("https://m.example/app.json"), .string("https://[::1]:8443/x/app.json")])
    )
    for (flags, text) in [
      ("--mirror http://m.example/app.json", "is no URL of a mirror; hint: https://"),
      ("--mirror https://m.example/a --mirror https://m.example/a", "is given twice"),
    ] {
      let outcome = try await stage.run(
        "sign --key prv.pem --online-key online0.pem app.json \(flags)")
      #expect(outcome.exitCode == 2 && outcome.stderr.contains(text), "\(outcome.stderr)")
    }
  }

  @Test("tells when the key set ends, and warns a month ahead: root signatures take their time")
  func keySetEnds() async throws {
    let stage = try Format2Stage()
    let end = Format2Stage.issued + 90 * Format2Stage.day
    try await stage.must(
      "keys sign-set --registry-name app.json --root root0.pub --online online0.pub"
        + " --expires \(end) --sign-with prv.pem --sign-with root0.pem --out sets.json")
    try await stage.must(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json --issued \(Format2Stage.issued)"
        + " payload.json --first --out app.json")
    for (days, isTold) in [(1, false), (61, true)] as [(Int64, Bool)] {
      let outcome = try await stage.run(
        "verify --strict --key pub.pem --at \(Format2Stage.issued + days * Format2Stage.day) app.json"
      )
      #expect(outcome.stdout.contains(", expires 2027-04-15T08:00:00Z"), "\(outcome.stdout)")
      #expect(outcome.stderr.contains("under key set 1 from 2027-04-15T08:00:00Z on") == isTold)
      #expect(outcome.exitCode == (isTold ? 1 : 0), "\(outcome.stderr)")
    }
  }

  @Test(
    "warns of a statement that nobody signs daily any more",
    arguments: [(90, 59, false), (90, 61, true), (30, 14, false), (30, 16, true)]
      as [(Int64, Int64, Bool)])
  func statementEnds(life: Int64, age: Int64, isTold: Bool) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument("--expires-days \(life)")
    let outcome = try await stage.run(
      "verify --strict --key pub.pem --at \(Format2Stage.issued + age * Format2Stage.day) app.json")
    #expect(outcome.stderr.contains("signed daily it never comes near;") == isTold)
    #expect(outcome.exitCode == (isTold ? 1 : 0), "\(outcome.stderr)")
  }

  @Test("warns of a statement that counts for less than 30 days", arguments: [0, -1] as [Int64])
  func shortLife(more: Int64) async throws {
    let key = try Keys.signing.get()
    let pin = Result<SPKIPin, PinSyntaxError>.success(try SPKIPin(base64: Format2Stage.pin))
    let document = RegistryDocument(
      registry: "app.json", keys: [RegistryKey(pattern: try HostPattern("a.example"), pin: pin)],
      terms: .init(
        number: .init(epoch: 0, version: 1), issued: Format2Stage.issued,
        expires: Format2Stage.issued + 30 * Format2Stage.day + more))
    let outcome = try await Tool.run(
      [
        "verify", "--strict", "--registry-name", "app.json", "--key",
        StrictBase64.encode(key.publicKeyDER), "--at", "\(Format2Stage.issued)", "-",
      ], input: try document.bytes(format1Key: key, onlineKeys: [key.trustKey]))
    #expect(outcome.exitCode == (more < 0 ? 1 : 0), "\(outcome.stderr)")
    #expect(outcome.stderr.contains(", less than 30 days after it was issued: ") == (more < 0))
  }

  @Test("an active pin counts as long as the statement, whatever its own expiry")
  func activePin() async throws {
    let stage = try Format2Stage()
    let key = try Keys.signing.get()
    let pin = Result<SPKIPin, PinSyntaxError>.success(try SPKIPin(base64: Format2Stage.pin))
    let document = RegistryDocument(
      registry: "app.json",
      keys: try [("a.example", 10), ("b.example", -1_000_000)].map { (host: String, end: Int64) in
        RegistryKey(
          pattern: try HostPattern(host), pin: pin, expires: Format2Stage.issued + end)
      },
      terms: .init(
        number: .init(epoch: 0, version: 1), issued: Format2Stage.issued,
        expires: Format2Stage.issued + 90 * Format2Stage.day))
    try stage.directory.write(
      document.bytes(format1Key: key, onlineKeys: [key.trustKey]), to: "app.json")
    let later = Format2Stage.issued + 89 * Format2Stage.day
    let outcome = try await stage.run("verify --json --key pub.pem --at \(later) app.json")
    let keys = try outcome.json.objectValue?["keys"]?.arrayValue?.compactMap(\.objectValue)
    #expect(keys?.map { $0["counts"] } == [.bool(true), .bool(false)])
  }

  @Test(
    "refuses with 1, and says why",
    arguments: [
      (
        "--key other.pub app.json",
        "key set 1 is refused: none of the keys that the app ships signed it;"
          + " hint: is this the registry's signing key?"
      ),
      ("--key pub.pem --registry-name other.json app.json", "hint: --registry-name"),
      ("--key pub.pem --require-statement plain.json", "no statement that vouches"),
      ("--root-key pub.pem plain.json", "no statement that vouches"),
      ("--root-key root2.pub app.json", "key set 1 is refused"),
      ("--key pub.pem --at 1807776000 app.json", "statement expired"),
      (
        "--key pub.pem --registry-name app.json stripped.json",
        "none of the keys that the app ships"
      ),
      ("--key pub.pem --registry-name app.json payload-changed.json", "not the one"),
      ("--key pub.pem --registry-name app.json denied-changed.json", "none of the online keys"),
    ])
  func refused(flags: String, says: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    try await stage.must("sign --key prv.pem payload.json --out plain.json")
    try Keys.other.get().writePublicKey(to: stage.directory.file("other.pub"))
    let good = try stage.json("app.json")
    func write(_ name: String, _ change: (inout JSONObject) throws -> Void) throws {
      var document = good
      try change(&document)
      try stage.directory.write(JSONValue.object(document).canonicalBytes, to: name)
    }
    try write("stripped.json") { $0["keySets"] = nil }
    try write("payload-changed.json") { document in
      document["payload"] = try stage.json("payload.json")["keys"].map {
        .object(["keys": $0, "x": .null])
      }
    }
    try write("denied-changed.json") { document in
      var statement = try #require(document["statement"]?.objectValue)
      statement["denied"] = .array([.string(Format2Stage.pin)])
      document["statement"] = .object(statement)
    }
    let at = flags.contains("--at") ? "" : " --at \(Format2Stage.issued)"
    let outcome = try await stage.run("verify \(flags)\(at)")
    #expect(outcome.exitCode == 1 && outcome.stdout.isEmpty, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
    let json = try await stage.run("verify --json \(flags)\(at)")
    #expect(json.exitCode == 1)
    #expect(try json.json.objectValue?["valid"] == .bool(false))
    // The control.
    #expect(
      try await stage.run("verify --key pub.pem app.json --at \(Format2Stage.issued)").exitCode == 0
    )
  }

  @Test("warns where clients of format 1 are left out")
  func format1() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    for (signature, says) in [(JSONValue?.none, "missing"), (.string("AAAA"), "invalid")] {
      var document = try stage.json("app.json")
      document["signature"] = signature
      try stage.directory.write(JSONValue.object(document).canonicalBytes, to: "app.json")
      let outcome = try await stage.run("verify --key pub.pem app.json --at \(Format2Stage.issued)")
      #expect(outcome.exitCode == 0)
      #expect(outcome.stderr.contains("format-1 signature is \(says)"), "\(outcome.stderr)")
    }
  }

  @Test("warns of keys whose algorithm nobody knows, where a role counts on them")
  func algorithms() async throws {
    let stage = try Format2Stage()
    let keys = try Format2Stage.keys.get()
    func key(_ name: String, _ more: String = "") throws -> String {
      let key = try #require(keys[name]).roleKey
      return #"{"alg":"\#(key.algorithm + more)","spki":"\#(StrictBase64.encode(key.spki))"}"#
    }
    for (root, online, also, warned) in try [
      (key("root1"), key("online1"), key("root2", "-9"), []),
      (key("root1", " "), key("online1"), key("root2"), ["root"]),
      (key("root1"), key("online1", "x"), key("root2"), ["online"]),
    ] {
      let set = """
        {"type":"keyset","registry":"app.json","epoch":1,
         "root":{"keys":[\(try key("root0")),\(root)],"threshold":1,"also":{"keys":[\(also)],"threshold":1}},
         "online":{"keys":[\(try key("online0")),\(online)],"threshold":1}}
        """
      var list = try KeySetList(
        JSONValue(parsing: [UInt8](#"[{"keySet":\#(set),"signatures":[]}]"#.utf8)))
      for signer in try [Keys.signing.get().trustKey, keys["root0"], keys["root2"]] {
        try list.sign(with: try #require(signer))
      }
      try stage.directory.write(list.json.canonicalBytes, to: "sets.json")
      let signed = try await stage.run(
        "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json payload.json"
          + " --issued \(Format2Stage.issued) --out fresh.json")
      #expect(signed.exitCode == 0, "\(signed.stderr)")
      let verify =
        "verify --key pub.pem --registry-name app.json fresh.json --at \(Format2Stage.issued)"
      #expect(try await stage.run(verify).exitCode == 0)
      let strict = try await stage.run(verify + " --strict")
      #expect(strict.exitCode == (warned.isEmpty ? 0 : 1), "\(strict.stderr)")
      for role in ["root", "online"] {
        #expect(
          strict.stderr.contains("warning: \(role) key ") == warned.contains(role),
          "\(strict.stderr)")
      }
      try FileManager.default.removeItem(at: stage.directory.file("fresh.json"))
    }
  }

  @Test("takes the registry's name from the URL, and asks for it on standard input")
  func names() async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let bytes = [UInt8](try Data(contentsOf: stage.directory.file("app.json")))
    let server = try LocalHTTPServer { _ in HTTPResponse(body: bytes) }
    let base = "verify --key pub.pem --at \(Format2Stage.issued) http://127.0.0.1:\(server.port)"
    #expect(try await stage.run("\(base)/api/v1/app.json").exitCode == 0)
    #expect(try await stage.run("\(base)/api/v1/app.json?x=1").exitCode == 0)
    #expect(try await stage.run("\(base)/api/v1/b.json").exitCode == 1)
    #expect(try await stage.run("\(base)/b.json --registry-name app.json").exitCode == 0)
    let key = stage.path("pub.pem")
    let piped = try await Tool.run(["verify", "--key", key, "-"], input: bytes)
    #expect(piped.exitCode == 2 && piped.stderr.contains("--registry-name"))
    let named = try await Tool.run(
      [
        "verify", "--key", key, "--registry-name", "app.json", "--at", "\(Format2Stage.issued)",
        "-",
      ], input: bytes)
    #expect(named.exitCode == 0)
  }

  @Test(
    "wrong usage",
    arguments: [
      ("app.json", "missing --key KEY"),
      ("--key pub.pem --root-threshold 2 app.json", "--root-key"),
      ("--root-key root0.pub --root-key root1.pub app.json", "missing --root-threshold"),
      ("--root-key root0.pub --root-key root0.pub --root-threshold 1 app.json", "stands twice"),
      ("--root-key root0.pub --root-threshold 2 app.json", "threshold of 2"),
    ])
  func usage(flags: String, says: String) async throws {
    let stage = try Format2Stage()
    try await stage.makeDocument()
    let outcome = try await stage.run("verify \(flags)")
    #expect(outcome.exitCode == 2 && outcome.stdout.isEmpty)
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
  }
}
