import CanonicalJSON
import Foundation
import RegistryServer
import TLSTools
import TestSupport
import Testing

/// Clients that hold key set n believe nothing that is signed under another set n.
@Suite("keys rotate goes on from what was published")
struct RotatePublishedTests {
  private struct Machine {
    let directory: TemporaryDirectory

    init(
      storage: String = "{type: fs, dump_dir: DIR/state}", tls: String = "tls", more: String = ""
    ) throws {
      directory = try TemporaryDirectory()
      for name in ["tls", "copies"] {
        try FileManager.default.createDirectory(
          at: directory.file(name), withIntermediateDirectories: true)
      }
      try Keys.signing.get().write(to: directory.file("tls/prv.pem"))
      try Keys.signing.get().writePublicKey(to: directory.file("tls/pub.pem"))
      try directory.write(
        """
        keys: [{fqdn: a.example.com, file: a.json}]
        storage: \(storage.replacing("DIR", with: directory.path()))
        publish: {dir: \(directory.path("copies"))}
        tls: {dir: \(directory.path("tls"))}
        \(more)
        """, to: "config.yaml")
    }

    func rotate(_ more: String...) async throws -> ChildProcess.Outcome {
      try await Tool.run(
        ["keys", "rotate", "--registry-name", "a.json", "--config-path", directory.path()] + more)
    }

    var sets: JSONValue {
      get throws {
        try JSONValue(parsing: [UInt8](Data(contentsOf: directory.file("tls/keysets/a.json"))))
      }
    }

    /// The copy of a document that carries the key sets of now.
    func publish() throws {
      let document = JSONValue.object(["payload": .object([:]), "keySets": try sets])
      try directory.write(document.canonicalBytes, to: "copies/a.json")
    }

    func lose(_ names: String...) throws {
      for name in names { try FileManager.default.removeItem(at: directory.file(name)) }
    }
  }

  @Test("and makes no second set 1, whatever is said")
  func secondFirst() async throws {
    let machine = try Machine()
    #expect(try await machine.rotate().exitCode == 0)
    try machine.publish()
    try machine.lose("tls/keysets", "tls/online")
    for more in ["--algorithm=ed25519", "--first"] {
      let refused = try await machine.rotate(more)
      #expect(refused.exitCode == 1, "\(refused.stderr)")
      #expect(refused.stderr.contains("would be another set 1; hint: put a good copy of "))
    }
    #expect(!FileManager.default.fileExists(atPath: machine.directory.path("tls/online")))
  }

  @Test("and makes no second set n+1 on an older tls.dir that was put back")
  func secondNext() async throws {
    let machine = try Machine()
    #expect(try await machine.rotate().exitCode == 0)
    let older = try machine.sets.canonicalBytes
    #expect(try await machine.rotate().exitCode == 0)
    try machine.publish()
    try machine.directory.write(older, to: "tls/keysets/a.json")
    try machine.lose("tls/online/a.json-2.pem")
    for more in ["--algorithm=ed25519", "--epoch=2"] {
      let refused = try await machine.rotate(more)
      #expect(refused.exitCode == 1, "\(refused.stderr)")
      #expect(refused.stderr.contains("a.json has key set 2, as "), "\(refused.stderr)")
      #expect(refused.stderr.contains("does not go on from that: this would be another set 2"))
    }
    #expect(try machine.sets.canonicalBytes == older)
    let wrong = try await machine.rotate("--epoch", "3")
    #expect(wrong.exitCode == 2 && wrong.stderr.contains("key set 2 is due"))
    let first = try await machine.rotate("--first")
    #expect(first.exitCode == 2 && first.stderr.contains("leave --first out"))
  }

  @Test(
    "and asks where that cannot be found out",
    arguments: [
      ("memory keeps nothing", "{type: memory}", "", "type is memory"),
      (
        "the store is gone", "{type: fs, dump_dir: DIR/state}", "sealed-store", "sealed-store tells"
      ),
      ("the database is", "{type: sqlite, dsn: DIR/a.db}", "sealed-store", "sealed-store tells"),
      ("a file is in its place", "{type: fs, dump_dir: DIR/config.yaml}", "", "no directory"),
    ])
  func unknown(name: String, storage: String, mark: String, reason: String) async throws {
    let machine = try Machine(storage: storage)
    if !mark.isEmpty { try machine.directory.write("0123\n", to: "tls/" + mark) }
    let refused = try await machine.rotate()
    #expect(refused.exitCode == 3, "\(name): \(refused.stderr)")
    #expect(refused.stderr.contains(reason), "\(name): \(refused.stderr)")
    #expect(refused.stderr.contains("hint: --first says that it had none"), "\(refused.stderr)")
    #expect(!FileManager.default.fileExists(atPath: machine.directory.path("tls/online")))
    #expect(try await machine.rotate("--first").exitCode == 0)
    let next = try await machine.rotate()
    #expect(next.exitCode == 3, "\(name): \(next.stderr)")
    #expect(next.stderr.contains("hint: --epoch 2 says that 1 was the last"), "\(next.stderr)")
    #expect(try await machine.rotate("--epoch", "2").exitCode == 0)
  }

  @Test("and asks without a configuration, and if the copy cannot be read")
  func nothingAtHand() async throws {
    let machine = try Machine()
    let alone = [
      "keys", "rotate", "--registry-name", "a.json", "--dir", machine.directory.path("tls"),
    ]
    let refused = try await Tool.run(alone)
    #expect(refused.exitCode == 3, "\(refused.stderr)")
    #expect(refused.stderr.contains("no configuration here"), "\(refused.stderr)")
    try machine.directory.write("{", to: "copies/a.json")
    let damaged = try await machine.rotate()
    #expect(damaged.exitCode == 3 && damaged.stderr.contains("is not strict JSON"))
    // A memory store goes on from the copy, and so does this.
    let memory = try Machine(storage: "{type: memory}")
    try memory.directory.write(#"{"payload":{}}"#, to: "copies/a.json")
    #expect(try await memory.rotate().exitCode == 0)
    #expect(try await memory.rotate().exitCode == 0)
  }

  @Test(
    "and says from set 2 on what else ends a thief: another server.key, which ends his tokens",
    arguments: [
      ("", "prv.pem"), ("server: {key: 0123456789abcdef}", "server.key"),
      ("ui: {enabled: false}", nil),
    ] as [(String, String?)])
  func tokens(more: String, source: String?) async throws {
    let machine = try Machine(more: more)
    let first = try await machine.rotate()
    #expect(first.exitCode == 0 && !first.stderr.contains("tokens"), "\(first.stderr)")
    let next = try await machine.rotate()
    #expect(next.exitCode == 0, "\(next.stderr)")
    #expect(next.stderr.contains("tokens") == (source != nil), "\(next.stderr)")
    if let source {
      #expect(next.stderr.contains("its thief may have \(source), too"), "\(next.stderr)")
    }
  }

  @Test("and says of a key of --sign-with that it is no root key of set 1")
  func otherSigner() async throws {
    let machine = try Machine()
    try TrustSigningKey.generate(.ed25519).write(to: machine.directory.file("root.pem"))
    let outcome = try await machine.rotate("--sign-with", machine.directory.path("root.pem"))
    #expect(outcome.exitCode == 0)
    #expect(outcome.stderr.contains("of --sign-with is no root key of key set 1"))
  }
}
