import CanonicalJSON
import FaultLab
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What `config check` tries is what `up` does: each fault is shown to both.
@Suite("config check, beyond the text", .timeLimit(.minutes(3)))
struct ConfigTrialTests {
  /// A directory with keys, and a configuration that `up` starts with.
  private func stage(_ more: String = "") throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    for folder in ["tls", "tls/keysets"] {
      try FileManager.default.createDirectory(
        at: directory.file(folder), withIntermediateDirectories: true)
    }
    let key = try Keys.signing.get()
    try key.write(to: directory.file("tls/prv.pem"))
    try key.writePublicKey(to: directory.file("tls/pub.pem"))
    try write(more, to: directory)
    return directory
  }

  private func write(_ more: String, to directory: TemporaryDirectory) throws {
    let hasStore = more.contains("storage:")
    try directory.write(
      """
      keys: [{fqdn: a.invalid, file: a.json}]
      server: {listen: "127.0.0.1:0"}
      \(hasStore ? "" : "storage: {dsn: \(directory.path("new/registry.db"))}")
      \(more.replacing("DIR", with: directory.path()))
      """, to: "config.yaml")
  }

  private func check(
    _ directory: TemporaryDirectory, _ flags: String...
  ) async throws -> ChildProcess.Outcome {
    try await Tool.run(["config", "check", "--config-path", directory.path()] + flags)
  }

  /// What `up` says to the same; one that starts is stopped.
  private func start(_ directory: TemporaryDirectory) async throws -> ChildProcess.Outcome {
    let server = try Tool.start(["up", "--config-path", directory.path()])
    for _ in 0..<600 where server.isRunning && !server.stdout.contains("listening") {
      // why: either line ends the wait; the limit is for a machine that is busy.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    return try await server.terminate()
  }

  @Test("accepts what up starts with, and makes nothing")
  func good() async throws {
    let directory = try stage()
    let outcome = try await check(directory)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(outcome.stderr.isEmpty, "\(outcome.stderr)")
    #expect(!FileManager.default.fileExists(atPath: directory.path("new")))
    #expect(try await start(directory).exitCode == 0)
    // What the server made is opened, and is as it was.
    let store = directory.file("new/registry.db")
    let before = try Data(contentsOf: store)
    #expect(try await check(directory).exitCode == 0)
    #expect(try Data(contentsOf: store) == before)
  }

  /// The configuration, a file to write with its text, the exit code of both, and what both say.
  static let faults: [(String, (String, String)?, Int32, String)] = [
    ("tls: {dir: DIR/nowhere}", nil, 3, "prv.pem"),
    ("", ("tls/prv.pem", "no key"), 1, "prv.pem"),
    ("tls: {anchors: DIR/ca.pem}", nil, 3, "ca.pem"),
    ("tls: {anchors: DIR/ca.pem}", ("ca.pem", "no certificate"), 3, "ca.pem"),
    ("storage: {type: redis, dsn: 'rediss://127.0.0.1:1'}", nil, 3, "no connection to 127.0.0.1:1"),
    (
      "storage: {type: redis, dsn: 'rediss://127.0.0.1:1?ca=DIR/ca.pem'}",
      ("ca.pem", "no certificate"), 3, "ca.pem cannot be used"
    ),
    ("storage: {type: redis, dsn: 'unix:///tmp/redis'}", nil, 1, "is no Redis"),
    (
      "storage: {type: redis, dsn: 'redis://127.0.0.1:1/0'}", nil, 3, "no connection to 127.0.0.1:1"
    ),
    ("storage: {type: postgres, dsn: 'postgres://127.0.0.1:1/x'}", nil, 3, "no connection to "),
    ("storage: {type: sqlite, dsn: DIR/store.db}", ("store.db", "no database"), 3, "store.db"),
    ("storage: {type: sqlite, dsn: DIR/config.yaml/store.db}", nil, 3, "config.yaml"),
    ("storage: {type: fs, dump_dir: DIR/config.yaml/docs}", nil, 3, "config.yaml"),
  ]

  @Test("refuses what up refuses, in the same way", arguments: faults)
  func refused(
    more: String, file: (String, String)?, code: Int32, says: String
  ) async throws {
    let directory = try stage(more)
    if let file { try directory.write(file.1, to: file.0) }
    let checked = try await check(directory)
    #expect(checked.exitCode == code && checked.stderr.contains(says), "\(checked.stderr)")
    #expect(checked.stdout.contains("keys[0]"))
    let started = try await start(directory)
    #expect(started.exitCode == code && started.stderr.contains(says), "\(started.stderr)")
    #expect(try await check(directory, "--offline").exitCode == 0)
  }

  @Test("warns of what up would log, and of an address that is in use, in JSON too")
  func warnings() async throws {
    let directory = try stage("ui: {enabled: true}")
    let busy = try LocalHTTPServer { _ in .text("mine") }
    defer { busy.stop() }
    try directory.write("[]", to: "tls/keysets/a")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: directory.path("tls/prv.pem"))
    let outcome = try await Tool.run(
      ["config", "check", "--json", "--config-path", directory.path()],
      environment: [
        "SSL_PINNING_SERVER_LISTEN": "127.0.0.1:\(busy.port)", "SSL_PINNING_SERVER_KEY": "short",
      ])
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    for part in [
      "others can read the signing key", "no document is called a,", "was a.json meant?",
      "127.0.0.1:\(busy.port) is in use",
    ] {
      #expect(outcome.stderr.contains(part), "\(part) is not in\n\(outcome.stderr)")
    }
    let warnings = try outcome.json.objectValue?["warnings"]?.arrayValue ?? []
    #expect(warnings.count == outcome.stderr.split(separator: "\n").count)
  }

  @Test(
    "warns of copies that could not be written or would lie beside prv.pem, and of key sets that nobody signs under",
    arguments: [
      (
        "publish: {dir: DIR/config.yaml/copies}",
        "publish.dir: DIR/config.yaml/copies cannot be made: "
      ),
      ("publish: {dir: DIR/config.yaml}", "publish.dir: DIR/config.yaml is no directory: no copy"),
      ("publish: {dir: DIR/tls}", "tls.dir with prv.pem is in it"),
      ("publish: {dir: DIR}", "tls.dir with prv.pem is in it"),
      ("publish: {dir: DIR/copies}", nil),
      ("publish: {statements: false}", "publish.statements is false, and "),
    ] as [(String, String?)])
  func publishing(more: String, says: String?) async throws {
    let directory = try stage(more + "\ntls: {dir: DIR/tls}")
    if more.contains("statements") {
      try writeSet(by: Keys.signing.get(), to: directory)
    }
    let outcome = try await check(directory)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    #expect(outcome.stderr.isEmpty == (says == nil), "\(outcome.stderr)")
    if let says {
      #expect(
        outcome.stderr.contains(says.replacing("DIR", with: directory.path())), "\(outcome.stderr)")
    }
    #expect(!FileManager.default.fileExists(atPath: directory.path("copies")))
  }

  @Test("warns of a set 1 that prv.pem did not sign, and of one that ends or has ended")
  func keySets() async throws {
    let now = Int64(Date().timeIntervalSince1970)
    for (key, end, says) in [
      (Keys.other, nil, "prv.pem did not sign key set 1 of a.json"),
      (Keys.signing, nil, nil), (Keys.signing, now + 40 * 86_400, nil),
      (Keys.signing, now + 20 * 86_400, "clients take nothing new under key set 1 from "),
      (Keys.signing, now - 60, "cannot be signed as it should be: key set 1 is expired since "),
    ] as [(Result<SigningKey, any Error>, Int64?, String?)] {
      let directory = try stage()
      try writeSet(by: key.get(), to: directory, expires: end)
      let outcome = try await check(directory)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stderr.isEmpty == (says == nil), "\(outcome.stderr)")
      if let says { #expect(outcome.stderr.contains(says), "\(outcome.stderr)") }
    }
  }

  /// Set 1 of the document, whose online key is the server's.
  private func writeSet(
    by key: SigningKey, to directory: TemporaryDirectory, expires: Int64? = nil
  ) throws {
    let online = try Keys.signing.get().trustKey.roleKey
    var list = KeySetList(registry: "a.json")
    try list.append(
      root: KeyRole(keys: [key.trustKey.roleKey], threshold: 1),
      online: KeyRole(keys: [online], threshold: 1), expires: expires)
    try list.sign(with: key.trustKey)
    try directory.write(list.json.canonicalBytes, to: "tls/keysets/a.json")
  }
}
