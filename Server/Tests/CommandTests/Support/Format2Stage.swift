import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Keys, a payload and a directory to sign documents of format 2 in, as an operator does.
struct Format2Stage {
  static let pin = "AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4="
  static let otherPin = SPKIPin(computed: Digest.sha256([1])).base64
  static let issued: Int64 = 1_800_000_000
  static let day: Int64 = 86_400
  /// Root keys 0 and 2 and online key 0 are Ed25519, the others P-256.
  static let keys = Result {
    try Dictionary(
      uniqueKeysWithValues: [
        ("root0", .ed25519), ("root1", .p256), ("root2", .ed25519), ("online0", .ed25519),
        ("online1", .p256),
      ].map { (name: String, kind: TrustSigningKey.Kind) in
        (name, try TrustSigningKey.generate(kind))
      })
  }

  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    for (name, key) in try Self.keys.get() {
      try key.write(to: directory.file("\(name).pem"))
      try key.writePublicKey(to: directory.file("\(name).pub"))
    }
    try Keys.signing.get().write(to: directory.file("prv.pem"))
    try Keys.signing.get().writePublicKey(to: directory.file("pub.pem"))
    try writePayload()
  }

  func path(_ name: String) -> String { directory.path(name) }

  /// Every member that format 1 knows, in strings and integers that RFC 8785 leaves as they are.
  func writePayload(_ pin: String = pin) throws {
    try directory.write(
      #"{"keys": [{"key": "\#(pin)", "domainName": "*.a.example", "fqdn": "www.a.example","#
        + #" "expire": 1900000000, "date": "2026-01-02T03:04:05Z"}]}"#, to: "payload.json")
  }

  /// Runs the tool; arguments that name files of the stage become their paths.
  func run(_ line: String, also arguments: [String] = []) async throws -> ChildProcess.Outcome {
    let words = line.split(separator: " ").map(String.init)
    let known = Set(try FileManager.default.contentsOfDirectory(atPath: path("")))
    let after = zip(words, [""] + words)
    return try await Tool.run(
      after.map { word, before in
        before == "--registry-name" || !known.contains(word) && before != "--out"
          ? word : path(word)
      } + arguments)
  }

  /// The same, and it must succeed without a word, but for the key set that is signed, and what --allow-loosening and
  /// --end-retirement were given for. And until the clock has come to ``issued``, statements of now are older than those of the stage.
  func must(_ line: String) async throws {
    let outcome = try await run(line)
    #expect(outcome.exitCode == 0, "\(line): \(outcome.stderr)")
    let isTold = line.hasPrefix("keys sign-set")
    let told = outcome.stderr.split(separator: "\n").filter {
      (line.contains("--issued") || !$0.contains(", before the one that it follows, "))
        && !$0.contains(", more than a year ahead of this machine's clock: ")
        && !$0.contains(" stays as it was: sign the next statement after ")
        && !(line.contains("--end-retirement")
          && $0.contains("can show the retirement that this ends"))
        && !(line.contains("--allow-loosening")
          && ["the statement takes back ", "the payload replaces all leaf pins "].contains(
            where: $0.contains))
    }
    #expect(
      isTold ? !outcome.stderr.contains("warning") : told.isEmpty, "\(line): \(outcome.stderr)")
  }

  /// Set 1 under the RSA key that the app ships: one root key, one online key.
  func makeSet() async throws {
    try await must(
      "keys sign-set --registry-name app.json --root root0.pub --online online0.pub"
        + " --sign-with prv.pem --sign-with root0.pem --out sets.json")
  }

  /// A document of format 2 in `app.json`.
  func makeDocument(_ flags: String = "") async throws {
    try await makeSet()
    try await must(
      "sign --first --key prv.pem --online-key online0.pem --key-sets sets.json --issued \(Self.issued)"
        + " payload.json --out app.json \(flags)")
  }

  func json(_ name: String) throws -> JSONObject {
    try #require(
      try JSONValue(parsing: [UInt8](Data(contentsOf: directory.file(name)))).objectValue)
  }

  func statement(_ name: String = "app.json") throws -> JSONObject {
    try #require(try json(name)["statement"]?.objectValue)
  }

  /// What a client that ships the RSA key makes of a document.
  func client(_ name: String = "app.json", at clock: Int64 = issued) throws -> TrustedRegistry {
    try TrustedRegistry(
      accepting: [UInt8](Data(contentsOf: directory.file(name))),
      under: try RegistryTrust(
        registry: "app.json", signingKey: try VerificationKey(Keys.signing.get().publicKeyPEM),
        requiresStatement: true), at: clock)
  }
}
