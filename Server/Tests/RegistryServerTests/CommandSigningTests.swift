import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// A server whose key a command has, on a store that stays.
@Suite("signing.command", .timeLimit(.minutes(3))) struct CommandSigningTests {
  static let host = "www.example.com"
  static let file = "www.example.com.json"

  /// What signs: a shell line that a test may change at any time.
  private struct Signer {
    let folder: TemporaryDirectory
    static let good = "exec openssl dgst -sha512 -sign key.pem"

    init() throws {
      folder = try TemporaryDirectory()
      let key = try testSigningKey.get()
      try key.write(to: folder.file("key.pem"))
      try key.writePublicKey(to: folder.file("key.pub"))
      try otherSigningKey.get().write(to: folder.file("other.pem"))
      try does(Self.good)
    }

    func does(_ line: String) throws {
      try folder.write("cd \(folder.path())\n\(line)\n", to: "sign.sh")
    }

    func section(timeout: String = "20s") -> String {
      "signing: {command: [sh, \(folder.path("sign.sh"))], public_key: \(folder.path("key.pub")), timeout: \(timeout)}"
    }

    func service(
      keys: String = "[{fqdn: \(host)}]", timeout: String = "20s",
      sharing other: ScriptedService? = nil
    ) throws -> ScriptedService {
      try ScriptedService(
        keys: keys, storage: "{dsn: DIR/registry.db}", server: ", key: a-key-for-the-tokens",
        more: section(timeout: timeout), tls: "keys", sharing: other)
    }
  }

  @Test(
    "signs what clients believe; a start that finds it broken serves that on, and forgets nothing")
  func publishes() async throws {
    let signer = try Signer()
    let first = try signer.service()
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    #expect(try await first.pins(in: Self.file)[Self.host] == [pin(1)])
    let published = try await first.get("/api/v1/\(Self.file)").body
    await first.service.stop()
    let seal = first.directory.path("keys/seal.key")
    let attributes = try FileManager.default.attributesOfItem(atPath: seal)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)

    try signer.does("exit 1")
    let second = try signer.service(sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    #expect(try await second.get("/api/v1/\(Self.file)").body == published)
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()

    // Without it the seal of the store has to be made anew.
    try FileManager.default.removeItem(atPath: seal)
    #expect(throws: RegistryServiceError.self) { try signer.service(sharing: first) }
    try signer.does(Signer.good)
    let third = try signer.service(sharing: first)
    third.observer.show(.accepted(pin(1)), at: Self.host)
    try await third.start()
    #expect(try await third.get("/api/v1/\(Self.file)").body == published)
    await third.service.stop()
  }

  @Test(
    "a command that fails, lies or hangs is an alert; the last document is served until it signs again",
    arguments: [
      "exit 1", "true", "exec openssl dgst -sha512 -sign other.pem", "exec sleep 600",
      "exec cat /dev/zero",
    ])
  func broken(line: String) async throws {
    let signer = try Signer()
    let server = try signer.service(timeout: "1s")
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let published = try await server.get("/api/v1/\(Self.file)").body
    try #require(!published.isEmpty)

    try signer.does(line)
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.get("/api/v1/\(Self.file)").body == published)
    let page = String(decoding: try await server.get("/metrics").body, as: UTF8.self)
    #expect(page.contains("ssl_pinning_alerts{kind=\"signing\"} 1"))
    // It is not over because the keys are looked at meanwhile, as each hour and at SIGHUP.
    for coordinator in server.service.duty.coordinators {
      await coordinator.checkSigning(at: server.clock.now())
      #expect(await coordinator.standing.conditions.contains { $0.kind.name == "signing" })
    }
    #expect(try await server.get("/readyz").status == 200)
    let reasons = server.log.events("document_not_stored").compactMap { $0["reason"]?.stringValue }
    #expect(reasons.contains { $0.contains("the signing command") }, "\(reasons)")

    try signer.does(Signer.good)
    var pins: [SPKIPin]? = []
    var isTold = true
    for _ in 0..<600 where pins?.count != 2 || isTold {
      await server.service.probe(Self.host)
      pins = try await server.pins(in: Self.file)[Self.host]
      // A busy machine may let a good command run out of its second, too: the next probe signs again.
      isTold = String(decoding: try await server.get("/metrics").body, as: UTF8.self)
        .contains("ssl_pinning_alerts{kind=\"signing\"} 1")
      // why: the command is left alone for a while by the clock of the machine
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(pins == [pin(1), pin(2)])
    #expect(!isTold)
    await server.service.stop()
  }

  @Test("while it hangs for some documents, others are probed and all are served")
  func hanging() async throws {
    let names = (0..<8).map { "h\($0).example" }
    let signer = try Signer()
    let server = try signer.service(
      keys: "[\((names + ["calm.example"]).map { "{fqdn: \($0)}" }.joined(separator: ", "))]",
      timeout: "5s")
    for name in names + ["calm.example"] { server.observer.show(.accepted(pin(1)), at: name) }
    try await server.start()
    for name in names + ["calm.example"] { await server.service.probe(name) }
    try signer.does("echo > hangs; exec sleep 600")
    for name in names { server.observer.show(.accepted(pin(2)), at: name) }
    let ended = Locked(false)
    let slow = Task {
      await withDiscardingTaskGroup { group in
        for name in names { group.addTask { await server.service.probe(name) } }
      }
      ended.withLock { $0 = true }
    }
    let hangs = signer.folder.path("hangs")
    #expect(await eventually { FileManager.default.fileExists(atPath: hangs) })
    for name in names {
      await server.service.probe("calm.example")
      #expect(try await server.get("/api/v1/\(name).json").status == 200)
    }
    #expect(!ended.withLock { $0 })
    await slow.value
    await server.service.stop()
  }

  @Test(
    "the same key in prv.pem and behind a command has one seal; another one is refused until it is meant"
  )
  func seals() async throws {
    let signer = try Signer()
    let file = try ScriptedService(storage: "{dsn: DIR/registry.db}")
    file.observer.show(.accepted(pin(1)), at: Self.host)
    try await file.start()
    await file.service.stop()
    try FileManager.default.createDirectory(
      at: file.directory.file("keys"), withIntermediateDirectories: true)
    let held = try signer.service(sharing: file)
    held.observer.show(.accepted(pin(1)), at: Self.host)
    try await held.start()
    #expect(try await held.get("/readyz").status == 200)
    #expect(held.log.events("store_not_believed").isEmpty)
    await held.service.stop()

    // Another key behind the command.
    try otherSigningKey.get().publicKeyPEM.write(
      to: signer.folder.file("key.pub"), atomically: true, encoding: .utf8)
    try signer.does("exec openssl dgst -sha512 -sign other.pem")
    let refusal = #expect(throws: RegistryServiceError.self) {
      try signer.service(sharing: file)
    }
    #expect(refusal.map { "\($0)" }?.contains("rename the file to seal.old.key") == true)
    let (seal, former) = (
      file.directory.file("keys/seal.key"), file.directory.file("keys/seal.old.key")
    )
    try FileManager.default.moveItem(at: seal, to: former)
    let other = try signer.service(sharing: file)
    try await other.start(isLeading: false)
    #expect(try await other.get("/readyz").status == 503)
    await other.service.stop()
    let repair = try StoreRepair(other.configuration)
    let names = try await repair.adopt(
      otherSigningKey.get().trustKey.roleKey.id, believingUnverified: false)
    #expect(names == [Self.file])
    await repair.close()
    let adopted = try signer.service(sharing: file)
    adopted.observer.show(.accepted(pin(1)), at: Self.host)
    try await adopted.start()
    #expect(try await adopted.get("/readyz").status == 200)
    await adopted.service.stop()
  }

  @Test("SIGHUP takes another command that signs, and refuses one that does not")
  func reload() async throws {
    let signer = try Signer()
    let server = try signer.service()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let reload = { (timeout: String) in
      try await server.service.reload(
        configuration(
          """
          keys: [{fqdn: \(Self.host)}]
          server: {listen: "127.0.0.1:0", key: a-key-for-the-tokens}
          storage: {dsn: \(server.directory.path("registry.db"))}
          tls: {dir: \(server.directory.path("keys")), dump_interval: 1h}
          \(signer.section(timeout: timeout))
          """))
    }
    try await reload("19s")
    try signer.does("exit 1")
    await #expect(throws: RegistryServiceError.self) { try await reload("18s") }
    try signer.does(Signer.good)
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    await server.service.stop()
  }

  /// The sections of a configuration, and what it is refused with.
  private static let mistakes = [
    ("signing: {command: [a]}", "signing.public_key is missing"),
    ("signing: {public_key: a}", "signing.command is missing"),
    ("signing: {command: [a], public_key: b}", "signed with server.key"),
    ("signing: {command: a, public_key: b}", "signing.command is a string"),
    ("signing: {input: hash}", "no such input: \"hash\""),
    ("signing: {timeout: 61s}", "not within 100ms to 1m"),
  ]

  @Test("a configuration that could not sign is refused", arguments: mistakes)
  func refused(section: String, reason: String) throws {
    let error = #expect(throws: ConfigurationError.self) {
      try configuration("keys: [{fqdn: a.b}]\n\(section)")
    }
    #expect(error.map { "\($0)" }?.contains(reason) == true, "\(error.map { "\($0)" } ?? "")")
  }

  @Test("a file that others can write names no command for the server to run")
  func writable() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path("config.yaml")
    try folder.write(
      """
      keys: [{fqdn: a.b}]
      server: {key: a-key-for-the-tokens}
      signing: {command: [a], public_key: b}
      """, to: "config.yaml")
    for (mode, isRead) in [(0o644, true), (0o664, false), (0o646, false)] {
      chmod(path, mode_t(mode))
      #expect(((try? ServerConfiguration(file: path)) != nil) == isRead)
    }
  }
}
