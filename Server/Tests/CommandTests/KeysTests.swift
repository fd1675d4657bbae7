import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
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
