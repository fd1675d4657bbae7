import CanonicalJSON
import Foundation
import TestSupport
import Testing

/// The signature that format-1 clients check, on documents of format 2, judged by other programs:
/// `python3` makes the bytes, `openssl` checks the signature. For ASCII strings and integers Python's
/// sorted, compact JSON is the RFC 8785 form.
@Suite("Format-1 clients on documents of format 2")
struct Format1ProofTests {
  /// Writes the signed bytes and the signature of `app.json`, either as they stand or as a client
  /// re-encodes what it knows of them.
  private static let script = """
    import base64, json, sys
    document = json.load(open("app.json"))
    payload = document["payload"]
    if sys.argv[1] == "known":
        known = ("domainName", "key", "fqdn", "expire", "date")
        payload = {"keys": [{name: key[name] for name in known if name in key}
                            for key in payload["keys"]]}
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    open("payload.bytes", "w").write(text)
    open("signature.bytes", "wb").write(base64.b64decode(document["signature"], validate=True))
    """

  private func openSSL(_ stage: Format2Stage, reading how: String) async throws -> String {
    let python = try await ChildProcess.run(
      "python3", ["-c", Self.script, how], directory: stage.directory.url)
    #expect(python.exitCode == 0, "\(python.stderr)")
    return try await ChildProcess.run(
      "openssl",
      [
        "dgst", "-sha512", "-verify", "pub.pem", "-signature", "signature.bytes", "payload.bytes",
      ], directory: stage.directory.url
    ).stdout
  }

  @Test(
    "find the signature good over the payload, whole or re-encoded from what they know",
    arguments: ["whole", "known"])
  func good(how: String) async throws {
    let stage = try Format2Stage()
    try stage.directory.write(SignStatementTests.settings, to: "settings.json")
    try await stage.makeDocument("--statement settings.json")
    let members = Set(try stage.json("app.json").keys)
    #expect(
      members == ["payload", "signature", "statement", "statementSignatures", "keySets"])
    #expect(try await openSSL(stage, reading: how) == "Verified OK\n")
    let bytes = try String(contentsOf: stage.directory.file("payload.bytes"), encoding: .utf8)
    for member in ["domainName", "key", "fqdn", "expire", "date"] {
      #expect(bytes.contains("\"\(member)\":"))
    }
    // Signed anew, as every day.
    try await stage.must("sign --key prv.pem --online-key online0.pem app.json --out app.json")
    #expect(try await openSSL(stage, reading: how) == "Verified OK\n")
    // The control: one pin changed.
    let text = try String(contentsOf: stage.directory.file("app.json"), encoding: .utf8)
    try stage.directory.write(
      text.replacingOccurrences(
        of: "\"key\":\"\(Format2Stage.pin)\"", with: "\"key\":\"\(Format2Stage.otherPin)\""),
      to: "app.json")
    #expect(try await openSSL(stage, reading: how) != "Verified OK\n")
  }

  @Test("lose a payload with members of its own, which sign warns of")
  func unknownMember() async throws {
    let stage = try Format2Stage()
    try stage.directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)","new":1}]}"#,
      to: "payload.json")
    try await stage.makeSet()
    let signed = try await stage.run(
      "sign --key prv.pem --online-key online0.pem --key-sets sets.json payload.json --first"
        + " --out app.json")
    #expect(signed.exitCode == 0 && signed.stderr.contains("leave out new"))
    #expect(try await openSSL(stage, reading: "whole") == "Verified OK\n")
    #expect(try await openSSL(stage, reading: "known") != "Verified OK\n")
  }
}
