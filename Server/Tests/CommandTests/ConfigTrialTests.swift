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
    let (hasStore, hasServer) = (more.contains("storage:"), more.contains("server:"))
    try directory.write(
      """
      keys: [{fqdn: a.invalid, file: a.json}]
      \(hasServer ? "" : "server: {listen: \"127.0.0.1:0\"}")
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

  @Test("with --probe says which keys would be published, and what each endpoint without one shows")
  func probe() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let server = try LocalTLSServer(identity: identity) { _ in .text("hello") }
    let directory = try stage()
    try directory.write(authority.root.pem, to: "ca.pem")
    func write(_ keys: String) throws {
      try directory.write(
        """
        keys: [\(keys)]
        storage: {dsn: \(directory.path("new/registry.db"))}
        tls: {anchors: \(directory.path("ca.pem"))}
        """, to: "config.yaml")
    }
    let good = "{fqdn: localhost, port: \(server.port), address: 127.0.0.1}"
    try write(good)
    let outcome = try await check(directory, "--probe")
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let pin = try SPKIPin(certificateDER: identity.leaf.der).base64
    #expect(outcome.stdout.contains(pin), "\(outcome.stdout)")
    // Apps that ask for another CA would refuse what is proved; one that is enough is none that they need.
    try directory.write(try CertificateAuthority.makeRoot(name: "Other").root.pem, to: "other.pem")
    let other = good.dropLast() + ", ca: [\(directory.path("other.pem"))]"
    try write(other + "}")
    let lacking = try await check(directory, "--probe")
    #expect(lacking.exitCode == 1)
    #expect(lacking.stdout.contains("none of the CAs in ca"), "\(lacking.stdout)")
    try write(other + ", match: any}")
    #expect(try await check(directory, "--probe").exitCode == 0)
    try write(good + ", {fqdn: other.example, port: \(server.port), address: 127.0.0.1}")
    let refused = try await check(directory, "--probe", "--json")
    #expect(refused.exitCode == 1)
    #expect(refused.stdout.contains("not believed"), "\(refused.stdout)")
    #expect(try await check(directory, "--probe", "--offline").exitCode == 2)
    server.stop()
  }

  /// The configuration, a file to write with its text, the exit code of both, and what both say.
  static let faults: [(String, (String, String)?, Int32, String)] = [
    ("tls: {dir: DIR/nowhere}", nil, 3, "prv.pem"),
    ("", ("tls/prv.pem", "no key"), 1, "prv.pem"),
    ("tls: {anchors: DIR/ca.pem}", nil, 3, "ca.pem"),
    ("tls: {anchors: DIR/ca.pem}", ("ca.pem", "no certificate"), 3, "ca.pem"),
    (
      "storage: {type: redis, dsn: 'rediss://127.0.0.1:1?ca=DIR/ca.pem'}",
      ("ca.pem", "no certificate"), 1, "ca.pem cannot be used"
    ),
    ("storage: {type: sqlite, dsn: DIR/store.db}", ("store.db", "no database"), 3, "store.db"),
    ("storage: {type: sqlite, dsn: DIR/config.yaml/store.db}", nil, 3, "config.yaml"),
    ("storage: {type: fs, dump_dir: DIR/config.yaml/docs}", nil, 3, "config.yaml"),
    (
      "server: {listen: '127.0.0.1:0', certificate: DIR/site.pem, private_key: DIR/site.key}", nil,
      3,
      "site.pem"
    ),
    ("server: {listen: '192.0.2.1:1'}", nil, 3, "192.0.2.1:1"),
    ("metrics: {listen: '192.0.2.1:1'}", nil, 3, "192.0.2.1:1"),
    ("publish: {online_keys: [DIR/online.pem]}", nil, 1, "online.pem"),
    ("publish: {online_keys: [DIR/online.pem]}", ("online.pem", "no key"), 1, "online.pem"),
    (
      "tls: {vantage_points: [{name: oslo, proxy: 'https://127.0.0.1:1', certificate: DIR/v.pem, key: DIR/v.key}]}",
      nil, 3, "the vantage point oslo"
    ),
    (
      "tls: {client_certificate: DIR/probe.pem, client_key: DIR/probe.key}",
      ("probe.pem", "no certificate"), 3, "tls.client_certificate"
    ),
    ("notify: {webhook: 'https://127.0.0.1:1/', ca: DIR/ca.pem}", nil, 3, "notify.ca"),
    (
      "notify: {webhook: 'https://127.0.0.1:1/', ca: DIR/ca.pem}", ("ca.pem", "no certificate"), 3,
      "notify.ca"
    ),
  ]

  @Test(
    "tells of a database that is away, which up waits for",
    arguments: [
      "redis, dsn: 'rediss://127.0.0.1:1'", "redis, dsn: 'redis://127.0.0.1:1/0'",
      "postgres, dsn: 'postgres://127.0.0.1:1/x'",
    ])
  func away(storage: String) async throws {
    let directory = try stage("storage: {type: \(storage)}")
    let checked = try await check(directory)
    #expect(checked.exitCode == 3, "\(checked.stderr)")
    #expect(checked.stderr.contains("no connection to 127.0.0.1"), "\(checked.stderr)")
    let started = try await start(directory)
    #expect(started.exitCode == 0 && started.stderr.contains("store_away"), "\(started.stderr)")
  }

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
    // Up's log is JSON, and so is its last word.
    for line in started.stderr.split(separator: "\n") {
      #expect((try? JSONValue(parsing: Array(line.utf8)))?.objectValue != nil, "\(line)")
    }
    #expect(started.stderr.contains("\"event\":\"up_failed\""), "\(started.stderr)")
    #expect(try await check(directory, "--offline").exitCode == 0)
  }

  @Test("what ends up is plain text where the log is")
  func plainFailure() async throws {
    let directory = try stage("tls: {dir: DIR/nowhere}\nlog: {format: text}")
    let started = try await start(directory)
    let last = started.stderr.split(separator: "\n").last ?? ""
    #expect(started.exitCode == 3 && last.contains("prv.pem"), "\(started.stderr)")
    #expect(!started.stderr.contains("up_failed"))
  }

  @Test("says that the store goes by another prv.pem, and that a record was changed")
  func store() async throws {
    let directory = try stage()
    #expect(try await start(directory).exitCode == 0)
    #expect(try await check(directory).exitCode == 0)
    try FileManager.default.removeItem(at: directory.file("tls/pub.pem"))
    try FileManager.default.removeItem(at: directory.file("tls/prv.pem"))
    let other = try SigningKey.generate(bits: 2048)
    try other.write(to: directory.file("tls/prv.pem"))
    let outcome = try await check(directory)
    #expect(outcome.exitCode == 1)
    let id = other.trustKey.roleKey.id.base64
    #expect(outcome.stderr.contains("prv.pem is \(id)"), "\(outcome.stderr)")
    #expect(try await check(directory, "--offline").exitCode == 0)
    // A server starts, and is not ready.
    #expect(try await start(directory).exitCode == 0)
    let place = ["--config-path", directory.path()]
    #expect(try await Tool.run(["keys", "adopt", "x"] + place).exitCode == 2)
    let hesitant = try await Tool.run(["keys", "adopt", id] + place)
    #expect(hesitant.exitCode == 1 && hesitant.stderr.contains("prv.old.pem"))
    try Keys.signing.get().write(to: directory.file("tls/prv.old.pem"))
    let adopted = try await Tool.run(["keys", "adopt", id] + place)
    #expect(adopted.exitCode == 0, "\(adopted.stderr)")
    #expect(adopted.stdout.hasPrefix("the store goes by \(id)"))
    #expect(try await check(directory).exitCode == 0)
    for arguments in [["a.json"], ["a.json", "--take", "--anew"]] {
      #expect(try await Tool.run(["store", "reset"] + arguments + place).exitCode == 2)
    }
    let none = try await Tool.run(["store", "reset", "b.json", "--anew"] + place)
    #expect(none.exitCode == 1 && none.stderr.contains("no document b.json is configured"))
    let anew = try await Tool.run(["store", "reset", "a.json", "--anew"] + place)
    #expect(anew.exitCode == 0 && anew.stdout.contains("first sight"), "\(anew.stderr)")
    let own = try await Tool.run(["store", "reset", ".store", "--take"] + place)
    #expect(own.exitCode == 0 && own.stdout.contains("and has 1 documents"), "\(own.stderr)")
    #expect(try await check(directory).exitCode == 0)
  }

  @Test(
    "warns of every private file that others can read, of a weak key, and of a store that forgets")
  func exposed() async throws {
    let directory = try stage()
    try directory.write(
      """
      keys: [{fqdn: a.invalid, file: a.json}]
      server: {listen: "127.0.0.1:0", key: 0123456789abcdef0123456789}
      storage: {type: memory}
      """, to: "config.yaml")
    try FileManager.default.createDirectory(
      at: directory.file("tls/online"), withIntermediateDirectories: true)
    try TrustSigningKey.generate(.ed25519).write(to: directory.file("tls/online/a.pem"))
    for file in ["tls/prv.pem", "tls/pub.pem"] {
      try FileManager.default.removeItem(at: directory.file(file))
    }
    try SigningKey.generate(bits: 1024).write(to: directory.file("tls/prv.pem"))
    let files = ["tls/prv.pem", "tls/online/a.pem", "config.yaml"]
    func warnings(_ mode: Int) async throws -> [String] {
      for file in files {
        try FileManager.default.setAttributes(
          [.posixPermissions: mode], ofItemAtPath: directory.path(file))
      }
      return try await check(directory).stderr.split(separator: "\n").map(String.init)
    }
    let open = try await warnings(0o640)
    for file in files {
      #expect(open.contains { $0.contains("others can read \(directory.path(file));") }, "\(open)")
    }
    let closed = try await warnings(0o600)
    #expect(closed.count == 2, "\(closed)")
    #expect(closed.contains { $0.contains("prv.pem has 1024 bits") })
    #expect(closed.contains { $0.contains("first sight") })
  }

  @Test("warns of a limit of open files that does not do for all connections, and of no other")
  func descriptors() async throws {
    let directory = try stage()
    for (limit, isTold) in [(1923, true), (1924, false)] {
      let call = "ulimit -n \(limit); exec \"$0\" config check --config-path \"$1\""
      let outcome = try await ChildProcess.run(
        "sh", ["-c", call, try Tool.path(), directory.path()])
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stderr.contains("server.listen takes 1023 connections") == isTold)
      #expect(outcome.stderr.isEmpty != isTold, "\(outcome.stderr)")
    }
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
      "others can read", "the administration is off", "no document is called a,",
      "was a.json meant?",
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

  @Test(
    "warns of a directory for copies that only its owner can enter",
    arguments: [0o700, 0o710, 0o755])
  func closedCopies(mode: Int) async throws {
    let directory = try stage("publish: {dir: DIR/copies}\ntls: {dir: DIR/tls}")
    try FileManager.default.createDirectory(
      atPath: directory.path("copies"), withIntermediateDirectories: false,
      attributes: [.posixPermissions: mode])
    let outcome = try await check(directory)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let says = "publish.dir: only the owner of \(directory.path())/copies can read what is in it"
    #expect(outcome.stderr.contains(says) == (mode == 0o700), "\(outcome.stderr)")
  }

  @Test(
    "warns of a leader's file that cannot be opened: its server would never lead",
    arguments: [
      ("storage: {dsn: DIR/registry.db}", "registry.db.leader"),
      ("storage: {type: fs, dump_dir: DIR/state}", "state/leader"),
    ])
  func leadersFile(storage: String, name: String) async throws {
    let directory = try stage(storage)
    #expect(try await start(directory).exitCode == 0)
    #expect(try await check(directory).stderr.contains("never lead") == false)
    let file = directory.file(name)
    try? FileManager.default.removeItem(at: file)
    // Which nobody can open to write, whoever runs the test.
    try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
    let outcome = try await check(directory)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let says =
      "/\(name) cannot be opened: is a directory: this server would never lead"
    #expect(outcome.stderr.contains(says), "\(outcome.stderr)")
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
