import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("keys generate")
struct KeysTests {
  @Test(
    "makes a pair that works, readable by its owner alone",
    arguments: [
      ([], 4096), (["--algorithm", "rsa-3072"], 3072), (["--algorithm", "rsa-2048"], 2048),
    ])
  func pair(flags: [String], bits: Int) async throws {
    try await withTemporaryDirectory { directory in
      // A directory that is not there yet, below another one.
      let out = directory.path("new/keys")
      let outcome = try await Tool.run(["keys", "generate", "--out", out] + flags)
      #expect(outcome.exitCode == 0)
      let line = try #require(outcome.stdout.split(separator: "\n").first.map(String.init))
      #expect(outcome.stdout == line + "\n")

      let shown = try VerificationKey(line)
      let file = try VerificationKey(
        String(contentsOfFile: out + "/pub.pem", encoding: .utf8))
      #expect(shown == file)
      #expect(shown.bits == bits)
      // Another program's reading of the pair.
      let derived = try await ChildProcess.run(
        "openssl", ["pkey", "-in", out + "/prv.pem", "-pubout", "-check"])
      #expect(derived.exitCode == 0)
      #expect(
        try String(contentsOfFile: out + "/prv.pem", encoding: .utf8)
          .hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
      let pem = try String(contentsOfFile: out + "/pub.pem", encoding: .utf8)
      #expect(derived.stdout.contains(pem))

      let attributes = try FileManager.default.attributesOfItem(atPath: out + "/prv.pem")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
  }

  @Test(
    "with --root makes a root key apart and an online key under it, and prints both lines for the app"
  )
  func root() async throws {
    try await withTemporaryDirectory { directory in
      let out = directory.path("tls")
      let outcome = try await Tool.run([
        "keys", "generate", "--out", out, "--algorithm", "rsa-2048", "--root", "--registry-name",
        "a.json",
      ])
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let lines = outcome.stdout.split(separator: "\n").map(String.init)
      func text(_ file: String) throws -> String {
        try String(contentsOfFile: directory.path(file), encoding: .utf8)
      }
      let (key, root) = (try TrustKey(text("tls/pub.pem")), try TrustKey(text("root/pub.pem")))
      #expect(
        lines == [
          "signingKeyBase64: \"\(StrictBase64.encode(key.spkiDER))\"",
          "rootKeys: [\"\(StrictBase64.encode(root.spkiDER))\"]",
        ])
      #expect(outcome.stderr.contains("carry it off this machine"))
      for file in ["tls/prv.pem", "root/prv.pem", "tls/online/first.pem"] {
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path(file))
        #expect(attributes[.posixPermissions] as? Int == 0o600, "\(file)")
      }
      // Nothing is overwritten, and nothing half made is left.
      let again = try await Tool.run([
        "keys", "generate", "--out", directory.path("other"), "--root=\(directory.path("root"))",
      ])
      #expect(again.exitCode == 3 && again.stderr.contains("exists and is kept"))
      let left = FileManager.default.fileExists(atPath: directory.path("other/prv.pem"))
      #expect(!left)
      #expect(
        try await Tool.run("keys", "generate", "--out", out, "--root=\(out)/root").exitCode != 0)
      // What the server signs is what an app with either line believes.
      let payload = try directory.write(
        #"{"keys":[{"domainName":"a.test","key":"\#(StrictBase64.encode([UInt8](repeating: 1, count: 32)))"}]}"#,
        to: "payload.json")
      let signed = try await Tool.run([
        "sign", "--first", "--key", out + "/prv.pem", "--online-key", out + "/online/first.pem",
        "--key-sets", out + "/keysets/a.json", "--registry-name", "a.json",
        payload.path(percentEncoded: false), "--out", directory.path("a.json"),
      ])
      #expect(signed.exitCode == 0, "\(signed.stderr)")
      for trust in [["--root-key", directory.path("root/pub.pem")], ["--key", out + "/pub.pem"]] {
        let verified = try await Tool.run(["verify"] + trust + [directory.path("a.json")])
        #expect(verified.exitCode == 0, "\(trust): \(verified.stderr)")
      }
    }
  }

  @Test("with --root, of no document, says a line that makes a key set and can be pasted")
  func rootHint() async throws {
    try await withTemporaryDirectory { directory in
      let out = directory.path("tls")
      let outcome = try await Tool.run([
        "keys", "generate", "--out", out, "--algorithm", "rsa-2048", "--root",
      ])
      let start = "hint: each document needs a key set: ssl-pinning "
      let hint = outcome.stderr.split(separator: "\n").first { $0.hasPrefix(start) }
      let line = try #require(hint).dropFirst(start.count).replacing("FILE", with: "a.json")
      let pasted = try await ChildProcess("/bin/bash", ["-c", "\(try Tool.path()) \(line)"])
        .wait(seconds: 60)
      #expect(pasted.exitCode == 0, "\(pasted.stderr)")
      let chain = try JSONValue(
        parsing: [UInt8](Data(contentsOf: directory.file("tls/keysets/a.json"))))
      #expect(try KeySetList(chain).shortages.isEmpty)
    }
  }

  @Test("with --root, puts key sets where the configuration has the server read them")
  func rootKeySets() async throws {
    try await withTemporaryDirectory { directory in
      let file = try directory.write(
        "keys: [{fqdn: a.test}]\npublish: {key_sets: \(directory.path("sets"))}\n",
        to: "config.yaml")
      let outcome = try await Tool.run([
        "keys", "generate", "--out", directory.path("tls"), "--algorithm", "rsa-2048", "--root",
        "--config-file", file.path(percentEncoded: false),
      ])
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(FileManager.default.fileExists(atPath: directory.path("sets/a.test.json")))
      #expect(outcome.stderr.contains("prv.pem, the server's secret"))
    }
  }

  @Test(
    "makes keys for statements, and says that format 1 does not take them",
    arguments: [("ed25519", "EdDSA"), ("p256", "ES256")])
  func curves(algorithm: String, name: String) async throws {
    try await withTemporaryDirectory { directory in
      let out = directory.path("keys")
      let outcome = try await Tool.run(
        "keys", "generate", "--out", out, "--algorithm", algorithm, "--json")
      #expect(outcome.exitCode == 0)
      #expect(outcome.stderr.contains("format 1 needs RSA"))
      let key = try TrustKey(String(contentsOfFile: out + "/pub.pem", encoding: .utf8))
      let json = try #require(try outcome.json.objectValue)
      #expect(json["algorithm"] == .string(name) && key.algorithm.rawValue == name)
      #expect(json["keyId"] == .string(key.id.base64))
      #expect(json["publicKey"] == .string(StrictBase64.encode(key.spkiDER)))
      let derived = try await ChildProcess.run(
        "openssl", ["pkey", "-in", out + "/prv.pem", "-pubout"])
      #expect(
        derived.stdout == (try String(contentsOfFile: out + "/pub.pem", encoding: .utf8)))
      let attributes = try FileManager.default.attributesOfItem(atPath: out + "/prv.pem")
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let refused = try await Tool.run("sign", "--key", out + "/prv.pem", "-")
      #expect(refused.exitCode == 1 && refused.stderr.contains("RSA"))
    }
  }

  @Test("keeps whatever file is there, and then writes none", arguments: ["prv.pem", "pub.pem"])
  func neverOverwrites(name: String) async throws {
    try await withTemporaryDirectory { directory in
      try directory.write("precious", to: name)
      let outcome = try await Tool.run(
        "keys", "generate", "--out", directory.path(), "--algorithm", "rsa-2048")
      #expect(outcome.exitCode == 3)
      #expect(outcome.stderr.contains(name) && outcome.stderr.contains("hint:"))
      #expect(outcome.stdout.isEmpty)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()) == [name])
      #expect(
        try String(contentsOf: directory.file(name), encoding: .utf8) == "precious")
    }
  }

  @Test("does not follow a link to where somebody else wants the key")
  func danglingLink() async throws {
    try await withTemporaryDirectory { directory in
      let target = directory.path("elsewhere")
      try FileManager.default.createDirectory(
        atPath: directory.path("keys"), withIntermediateDirectories: false)
      try FileManager.default.createSymbolicLink(
        atPath: directory.path("keys/prv.pem"), withDestinationPath: target)
      let outcome = try await Tool.run(
        "keys", "generate", "--out", directory.path("keys"), "--algorithm", "rsa-2048")
      #expect(outcome.exitCode == 3)
      #expect(!FileManager.default.fileExists(atPath: target))
    }
  }

  @Test("takes the private key back where the public one cannot be written")
  func allOrNothing() async throws {
    try await withTemporaryDirectory { directory in
      try FileManager.default.createSymbolicLink(
        atPath: directory.path("pub.pem"), withDestinationPath: directory.path("nowhere"))
      let outcome = try await Tool.run(
        "keys", "generate", "--out", directory.path(), "--algorithm", "rsa-2048")
      #expect(outcome.exitCode == 3)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()) == ["pub.pem"])
    }
  }

  @Test("says so where no directory can be made", arguments: ["/dev/null/keys", "/proc/keys"])
  func noDirectory(path: String) async throws {
    let outcome = try await Tool.run(
      "keys", "generate", "--out", path, "--algorithm", "rsa-2048")
    #expect(outcome.exitCode == 3)
    #expect(outcome.stderr.contains(path))
    #expect(outcome.speaksProperly)
  }
}
