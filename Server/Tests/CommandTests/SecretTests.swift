import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Secrets on a command line")
struct SecretTests {
  private static let key = Result { try TrustSigningKey.generate(.ed25519) }

  @Test("are quoted by no message, whatever argument or flag they stand in")
  func hidden() async throws {
    let directory = try TemporaryDirectory()
    try Self.key.get().write(to: directory.file("prv.pem"))
    let pem = try String(contentsOf: directory.file("prv.pem"), encoding: .utf8)
    let key = pem.split(separator: "\n").dropFirst().dropLast().joined()
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEifQ.c2VjcmV0c2VjcmV0c2VjcmV0"
    let url = "https://ada:hunter2@127.0.0.1:1"
    try directory.write("{}", to: "p.json")
    let file = directory.path("p.json")
    try Keys.signing.get().writePublicKey(to: directory.file("pub.pem"))
    let pub = directory.path("pub.pem")
    let admin = [
      "--file", "a.json", "--endpoint", "a.example", "--server", "http://127.0.0.1:1",
      "--token-file", file,
    ]
    for (secret, words) in [
      (key, ["admin", "approve", key] + admin), (key, ["admin", "revoke", key] + admin),
      (key, ["admin", "deny", key, "--why", "x", "--server", "http://127.0.0.1:1"]),
      (key, ["admin", "stage", key] + admin),
      (
        key,
        [
          "sign", "--online-key", directory.path("prv.pem"), "--first", "--registry-name", "a",
          "--deny", key, file,
        ]
      ),
      (
        key,
        [
          "sign", "--online-key", directory.path("prv.pem"), "--first", "--registry-name", "a",
          "--mirror", key, file,
        ]
      ),
      (key, ["get", key, "--registry", file, "--key", pub]), (key, ["pin", key]),
      (key, ["pin", "--json", key]),
      (token, ["admin", "pending", "--server", "http://127.0.0.1:1", "--token-file", token]),
      (
        token,
        ["admin", "pending", "--server", "http://127.0.0.1:1?token=\(token)", "--token-file", file]
      ),
      (
        "s3cret",
        ["admin", "pending", "--server", "http://127.0.0.1:1?token=s3cret", "--token-file", file]
      ),
      ("hunter2", ["verify", "--key", pub, url + "/app.json"]),
      ("hunter2", ["verify", "--key", pub, "https://ada:hun/hunter2@127.0.0.1:1/app.json"]),
      ("hunter2", ["get", url, "--registry", url + "/app.json", "--key", pub]),
      ("s3cret", ["verify", "--key", pub, "https://127.0.0.1:1/app.json?token=s3cret"]),
    ] {
      let outcome = try await Tool.run(words)
      let said = outcome.stderr + outcome.stdout
      #expect(outcome.exitCode != 0 && !said.isEmpty, "\(words)")
      #expect(!said.contains(secret.prefix(40)), "\(words): \(said)")
    }
  }

  @Test("are hidden line by line, in hexadecimal, and in an address with a mistake")
  func pasted() async throws {
    let directory = try TemporaryDirectory()
    try Keys.signing.get().write(to: directory.file("rsa.pem"))
    let pem = try String(contentsOf: directory.file("rsa.pem"), encoding: .utf8)
    let lines = pem.split(separator: "\n").map(String.init)
    let body = lines.dropFirst().dropLast()
    let hex = String(repeating: "0f1e2d3c", count: 8)
    let colons = String(repeating: "0f:1e:2d:3c:", count: 8).dropLast()
    for (name, secrets, argument) in [
      ("whole", Array(body), pem),
      ("without a footer", Array(body), lines.dropLast().joined(separator: "\n")),
      ("the body", Array(body), body.joined(separator: "\n")),
      ("its second line", [body[2]], body[2]), ("in hexadecimal", [hex], hex),
      ("in C's", [hex], "0x" + hex), ("as OpenSSL prints it", [String(colons)], String(colons)),
      ("an address", ["hunter2"], "postgres:/ada:hunter2@db/x"),
    ] {
      for words in [["pin", argument], ["get", "a", argument, "--registry", "x"], [argument]] {
        let outcome = try await Tool.run(words)
        let said = outcome.stderr + outcome.stdout
        #expect(outcome.exitCode != 0 && !said.isEmpty, "\(name)")
        for secret in secrets { #expect(!said.contains(secret), "\(name), \(words[0]): \(said)") }
      }
    }
  }

  @Test("are hidden, and nothing else is: paths, pins, hosts and ports stay")
  func shown() async throws {
    let pin = "AG1751Vd2CAmRCxPGieoDomhmJy4ezREjtIZTBgZbV4="
    let path = "/nowhere/a-rather-long-name-of-a-directory-2026/registry.example.com.json"
    let missing = try await Tool.run("verify", "--key", "AAAA", path)
    #expect(missing.stderr.contains("AAAA"))
    let file = try await Tool.run(["canonicalize", path])
    #expect(file.stderr.contains("cannot read \(path): "))
    let repeated = try await Tool.run("get", "\(pin):80", "--registry", "x", "--key", "y")
    #expect(repeated.stderr.contains(pin), "\(repeated.stderr)")
    let port = try await Tool.run(
      "admin", "pending", "--server", "http://127.0.0.1:1", "--token-file", "/dev/null")
    #expect(port.exitCode == 2)
  }
}
