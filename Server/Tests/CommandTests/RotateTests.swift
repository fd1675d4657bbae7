import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("keys rotate")
struct RotateTests {
  private static let file = "www.example.com.json"

  /// A server's directory with the shipped key.
  private func stage() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      at: directory.file("tls"), withIntermediateDirectories: true)
    try Keys.signing.get().write(to: directory.file("tls/prv.pem"))
    return directory
  }

  /// Says which set is due: no configuration is at hand that could tell.
  private func rotate(
    _ directory: TemporaryDirectory, to epoch: Int = 1
  ) async throws -> ChildProcess.Outcome {
    try await Tool.run(
      ["keys", "rotate", "--registry-name", Self.file, "--dir", directory.path() + "/tls"]
        + (epoch == 1 ? ["--first"] : ["--epoch", "\(epoch)"]))
  }

  @Test("makes one key set after another, each with a key of its own, and overwrites nothing")
  func chain() async throws {
    let directory = try stage()
    for epoch in 1...3 {
      let outcome = try await rotate(directory, to: epoch)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stdout.hasPrefix("key set \(epoch) of \(Self.file): online key "))
      #expect(!outcome.stderr.contains("warning"))
    }
    let chain = try JSONValue(
      parsing: [UInt8](Data(contentsOf: directory.file("tls/keysets/" + Self.file))))
    #expect(chain.arrayValue?.count == 3)
    let keys = try FileManager.default.contentsOfDirectory(
      atPath: directory.file("tls/online").path(percentEncoded: false))
    #expect(keys.sorted() == (1...3).map { "\(Self.file)-\($0).pem" })
  }

  @Test("tells the new key's id, by which keys sign-set knows a chain that was changed on its way")
  func assertion() async throws {
    let directory = try stage()
    let root = try TrustSigningKey.generate(.ed25519)
    try root.write(to: directory.file("root.pem"))
    try root.writePublicKey(to: directory.file("root.pub"))
    let outcome = try await Tool.run([
      "keys", "rotate", "--registry-name", Self.file, "--dir", directory.path() + "/tls", "--root",
      directory.path("root.pub"), "--first",
    ])
    let words = outcome.stdout.split(whereSeparator: \.isWhitespace)
    let id = String(try #require(words.last))
    let said = [
      "--registry-name", Self.file, "--epoch", "1", "--root", root.roleKey.id.base64,
      "--root-threshold", "1", "--online", id,
    ]
    #expect(
      outcome.stderr.contains("hint: keys sign-set \(said.joined(separator: " ")) signs it, "))
    #expect(outcome.stderr.contains("to be signed: key set 1\n"), "\(outcome.stderr)")
    let sign = [
      "keys", "sign-set", directory.path("tls/keysets/" + Self.file), "--sign-with",
      directory.path("root.pem"),
    ]
    #expect(try await Tool.run(sign + said).exitCode == 0)
    let other = try await Tool.run(sign + said.dropLast() + [root.roleKey.id.base64])
    #expect(other.exitCode == 1 && other.stdout.isEmpty, "\(other.stderr)")
  }

  @Test("makes no set that has lost the keys under \"also\"", arguments: ["root", "online"])
  func also(role: String) async throws {
    let directory = try stage()
    #expect(try await rotate(directory).exitCode == 0)
    let file = directory.file("tls/keysets/" + Self.file)
    let json = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    let key = try TrustSigningKey.generate(.ed25519).roleKey
    let also = JSONValue.object([
      "keys": .array([
        .object(["alg": .string("EdDSA"), "spki": .string(Data(key.spki).base64EncodedString())])
      ]), "threshold": .number(try #require(JSONNumber(exactly: 1))),
    ])
    let changed = json.replacing(
      "\"\(role)\":{",
      with: "\"\(role)\":{\"also\":\(String(decoding: also.canonicalBytes, as: UTF8.self)),")
    #expect(changed != json)
    try Data(changed.utf8).write(to: file)
    let outcome = try await rotate(directory, to: 2)
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("keys under \"also\""))
    #expect(try Data(contentsOf: file) == Data(changed.utf8))
  }

  @Test("carries on no root key of an algorithm that nobody knows", arguments: [" ", ""])
  func algorithm(more: String) async throws {
    let directory = try stage()
    let shipped = try Keys.signing.get().trustKey
    let root = try TrustSigningKey.generate(.ed25519)
    try root.writePublicKey(to: directory.file("root.pub"))
    var list = KeySetList(registry: Self.file)
    let other = try RoleKey(
      algorithm: root.roleKey.algorithm + more, spki: root.publicKeyDER,
      crypto: PlatformRegistryCrypto())
    try list.append(
      root: KeyRole(keys: [shipped.roleKey, other], threshold: 1),
      online: KeyRole(keys: [shipped.roleKey], threshold: 1))
    try list.sign(with: shipped)
    try FileManager.default.createDirectory(
      at: directory.file("tls/keysets"), withIntermediateDirectories: true)
    try directory.write(list.json.canonicalBytes, to: "tls/keysets/" + Self.file)
    let outcome = try await rotate(directory, to: 2)
    #expect(outcome.exitCode == (more.isEmpty ? 0 : 1), "\(outcome.stderr)")
    guard !more.isEmpty else { return }
    #expect(outcome.stderr.contains(" with the algorithm \"EdDSA \", and nothing that it signs"))
    #expect(outcome.stderr.contains("hint: --root names the root keys anew"))
    let named = try await Tool.run([
      "keys", "rotate", "--registry-name", Self.file, "--dir", directory.path() + "/tls", "--root",
      directory.path("root.pub"), "--epoch", "2",
    ])
    #expect(named.exitCode == 0, "\(named.stderr)")
  }

  @Test("after one that broke off, says what to do")
  func brokenOff() async throws {
    let directory = try stage()
    #expect(try await rotate(directory).exitCode == 0)
    try FileManager.default.removeItem(at: directory.file("tls/keysets/" + Self.file))
    let outcome = try await rotate(directory)
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("hint: delete the key if a rotation broke off"))
  }

  @Test(
    "takes no path for a document's name",
    arguments: [
      "../app.json", "a/b.json", "..", "a\nb.json", ".hidden", "a b.json", "admin", "app.json.gz",
    ])
  func name(name: String) async throws {
    let directory = try stage()
    let outcome = try await Tool.run([
      "keys", "rotate", "--registry-name", name, "--dir", directory.path() + "/tls",
    ])
    #expect(outcome.exitCode == 2 && outcome.stderr.contains("the name of a document"))
  }

  @Test("refuses a name that no document of the configuration has, and makes nothing")
  func unknownName() async throws {
    let directory = try stage()
    try directory.write("keys: [{fqdn: api1.example.com, file: api1.json}]", to: "config.yaml")
    func rotate(_ name: String, _ more: String...) async throws -> ChildProcess.Outcome {
      try await Tool.run(["keys", "rotate", "--registry-name", name] + more)
    }
    let place = ["--config-path", directory.path()]
    let unknown = try await Tool.run(["keys", "rotate", "--registry-name", "api1"] + place)
    #expect(unknown.exitCode == 1, "\(unknown.stderr)")
    #expect(unknown.stderr.contains("has no document \"api1\"; hint: was api1.json meant?"))
    let made = try FileManager.default.contentsOfDirectory(atPath: directory.path("tls"))
    #expect(made == ["prv.pem"])
    // Its tls.dir is used where none is said, and nobody has to say that no name could be checked.
    let known = try await Tool.run(["keys", "rotate", "--registry-name", "api1.json"] + place)
    #expect(known.exitCode == 0 && !known.stderr.contains("note: no configuration"))
    #expect(FileManager.default.fileExists(atPath: directory.path("tls/keysets/api1.json")))
    let alone = try await rotate("b.json", "--dir", directory.path("tls"), "--first")
    #expect(alone.exitCode == 0, "\(alone.stderr)")
    #expect(alone.stderr.hasPrefix("note: no configuration here says which documents there are"))
  }

  @Test("writes key sets where the configuration has the server read them")
  func elsewhere() async throws {
    let directory = try stage()
    try directory.write(
      """
      keys: [{fqdn: a.example.com, file: a.json}]
      publish: {key_sets: \(directory.path("sets"))}
      """, to: "config.yaml")
    let outcome = try await Tool.run([
      "keys", "rotate", "--registry-name", "a.json", "--config-path", directory.path(),
    ])
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(FileManager.default.fileExists(atPath: directory.path("sets/a.json")))
    #expect(!FileManager.default.fileExists(atPath: directory.path("tls/keysets")))
  }

  @Test("says what is missing without the server's key, and wants the document's name")
  func usage() async throws {
    let directory = try TemporaryDirectory()
    let missing = try await rotate(directory)
    #expect(missing.exitCode == 3 && missing.stderr.contains("prv.pem"))
    let unnamed = try await Tool.run(["keys", "rotate"])
    #expect(unnamed.exitCode == 2 && unnamed.stderr.contains("--registry-name"))
  }

  @Test(
    "gives what it makes to the owner of tls.dir, who runs the server", .enabled(if: geteuid() == 0)
  )
  func owner() async throws {
    let directory = try stage()
    let tls = directory.path("tls")
    #expect(chown(tls, 12_345, 23_456) == 0)
    #expect(try await rotate(directory).exitCode == 0)
    for name in ["", "/keysets", "/keysets/" + Self.file, "/online", "/online/\(Self.file)-1.pem"] {
      var status = stat()
      #expect(stat(tls + name, &status) == 0)
      #expect(status.st_uid == 12_345 && status.st_gid == 23_456, "\(name)")
    }
    // What is there keeps its owner.
    #expect(try await rotate(directory, to: 2).exitCode == 0)
    var status = stat()
    #expect(stat(tls + "/keysets/" + Self.file, &status) == 0 && status.st_uid == 12_345)
  }

  @Test(
    "run by root, follows no link in another user's directory",
    .enabled(if: geteuid() == 0), arguments: ["online", "keysets"])
  func link(name: String) async throws {
    let directory = try stage()
    #expect(chown(directory.path("tls"), 12_345, 23_456) == 0)
    try FileManager.default.createDirectory(
      at: directory.file("root"), withIntermediateDirectories: true)
    #expect(symlink(directory.path("root"), directory.path("tls/" + name)) == 0)
    let outcome = try await rotate(directory)
    #expect(outcome.exitCode == 3, "\(outcome.stderr)")
    #expect(outcome.stderr.contains("root follows no link in a directory of another user's"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path("root")).isEmpty)
    var status = stat()
    #expect(stat(directory.path("root"), &status) == 0 && status.st_uid == 0)
  }
}
