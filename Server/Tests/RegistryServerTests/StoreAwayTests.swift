import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("A server that starts while its store is away", .timeLimit(.minutes(5)))
struct StoreAwayTests {
  private static let host = "www.example.com"
  private static let file = "www.example.com.json"
  private static let path = "/api/v1/www.example.com.json"
  private static let published = "publish: {dir: 'DIR/public'}"

  /// The YAML of a database of the test's own.
  private static func storage(_ server: any DatabaseUnderTest) -> String {
    if let server = server as? PostgresServer {
      return "{type: postgres, dsn: \"\(server.dsn())\", max_open_conns: 2}"
    }
    return "{type: redis, dsn: \"\((server as? RedisServer)?.dsn() ?? "")\"}"
  }

  private static func comes(_ server: ScriptedService) async -> Bool {
    await eventually {
      server.log.events("store_came").count == 1 && server.log.events("leading").count == 1
    }
  }

  @Test(
    "serves the last copy, says what it waits for, decides nothing, and goes over into its work by itself",
    arguments: DatabaseKind.allCases)
  func copies(_ kind: DatabaseKind) async throws {
    let database = try await kind.start()
    let yaml = Self.storage(database)
    let first = try ScriptedService(storage: yaml, more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()
    try await database.stop()

    let second = try ScriptedService(storage: yaml, more: Self.published, sharing: first)
    second.observer.show(.accepted(pin(2)), at: Self.host)
    try await second.service.start()
    #expect(try await second.get(Self.path).body == before.bytes)
    #expect(second.log.events("store_away").count == 1)
    let readiness = try await second.get("/health/readiness")
    #expect(readiness.status == 503)
    #expect(String(decoding: readiness.body, as: UTF8.self).contains("\"store\""))
    #expect(try await second.get("/health/startup").status == 503)
    #expect(try await second.get("/health/liveness").status == 200)
    let page = String(decoding: try await second.get("/metrics").body, as: UTF8.self)
    #expect(page.contains("ssl_pinning_store_awaited 1\n"))
    let people = AdministeredService(scripted: second)
    let denial = #"{"pin":"\#(pin(9).base64)","why":"x"}"#
    let refused = try await people.call("POST", "/denials", denial)
    #expect(refused.status == 503 && refused.headers["retry-after"] == "5")
    #expect(refused.error?.contains("waits for its store") == true)
    #expect(try await people.call("GET", "/session").status == 200)
    let overview = try await people.call("GET", "/overview")
    #expect(overview["readiness", "ready"] == false)
    #expect(overview["alerts", "0", "kind"] == "storing")
    // Strangers learn nothing of it.
    #expect(try await people.call("POST", "/denials", denial, headers: [:]).status == 401)
    // What is read again is in force, and nothing is probed or signed by it.
    try await second.reload(
      keys: "[{fqdn: www.example.com}, {fqdn: api.example.com, file: www.example.com.json}]",
      storage: yaml, more: Self.published)
    #expect(await second.service.probe(Self.host) == 0)
    #expect(try await second.get(Self.path).body == before.bytes)

    try await database.launch()
    #expect(await Self.comes(second))
    #expect(await eventually { second.log.events("document_published").count > 0 })
    second.observer.show(.accepted(pin(2)), at: "api.example.com")
    for name in [Self.host, "api.example.com"] { await second.service.probe(name) }
    let pins = try await second.pins(in: Self.file)
    #expect(pins[Self.host] == [pin(1), pin(2)] && pins["api.example.com"] == [pin(2)])
    #expect(try await people.call("POST", "/denials", denial).status == 200)
    #expect(second.log.events("store_away").count == 1)
    var after = ""
    for _ in 0..<600 where !after.contains("ssl_pinning_store_awaited 0\n") {
      after = String(decoding: try await second.get("/metrics").body, as: UTF8.self)
      // why: the page is made at most once a second.
      try await Task.sleep(for: .milliseconds(50))
    }
    #expect(after.contains("ssl_pinning_store_awaited 0\n"))
    await second.service.stop()
    try await database.stop()
  }

  @Test(
    "without a copy, documents are answered with why, and a stop is one",
    arguments: DatabaseKind.allCases)
  func noCopies(_ kind: DatabaseKind) async throws {
    let database = try await kind.start()
    let yaml = Self.storage(database)
    try await database.stop()
    let server = try ScriptedService(storage: yaml)
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.service.start()
    let answer = try await server.get(Self.path)
    #expect(answer.status == 503 && answer.headers["retry-after"] == "10")
    #expect(String(decoding: answer.body, as: UTF8.self).contains("waits for its store"))
    try await database.launch()
    #expect(await Self.comes(server))
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1)])
    await server.service.stop()
    try await database.stop()
    let third = try ScriptedService(storage: yaml, sharing: server)
    try await third.service.start()
    await third.service.stop()
    #expect(third.log.events("stopped").count == 1)
  }

  /// What is wrong with the copy in `publish.dir`.
  enum Fault: CaseIterable { case older, edited, otherKey }

  @Test(
    "serves no copy that is older than the last, edited, or another key's",
    arguments: Fault.allCases)
  func badCopies(_ fault: Fault) async throws {
    let database = try await RedisServer.start()
    let yaml = Self.storage(database)
    let first = try ScriptedService(storage: yaml, more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let place = first.directory.file("public/\(Self.file)")
    #expect(await eventually { FileManager.default.fileExists(atPath: place.path()) })
    let older = try Data(contentsOf: place)
    try await AdministeredService(scripted: first).call(
      "POST", "/denials", #"{"pin":"\#(pin(9).base64)","why":"x"}"#)
    await first.service.stop()
    let newer = try String(contentsOf: place, encoding: .utf8)
    #expect(Data(newer.utf8) != older)
    switch fault {
    case .older: try older.write(to: place)
    case .edited:
      try Data(newer.replacing(pin(1).base64, with: pin(3).base64).utf8).write(to: place)
    case .otherKey:
      let key = try otherSigningKey.get()
      for name in ["prv.pem", "pub.pem"] {
        try FileManager.default.removeItem(at: first.directory.file(name))
      }
      try key.write(to: first.directory.file("prv.pem"))
      try key.writePublicKey(to: first.directory.file("pub.pem"))
    }
    try await database.stop()
    let second = try ScriptedService(storage: yaml, more: Self.published, sharing: first)
    try await second.service.start()
    #expect(try await second.get(Self.path).status == 503)
    await second.service.stop()
  }

  @Test("serves the last copy that was written, though a newer one could not be, and no older one")
  func unwrittenCopy() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let first = try ScriptedService(storage: yaml, more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let people = AdministeredService(scripted: first)
    func deny(_ key: UInt8) async throws -> AdministeredService.Answer {
      try await people.call("POST", "/denials", #"{"pin":"\#(pin(key).base64)","why":"x"}"#)
    }
    let place = first.directory.file("public/\(Self.file)")
    #expect(try await deny(7).status == 200)
    let older = try Data(contentsOf: place)
    #expect(try await deny(8).status == 200)
    let last = try Data(contentsOf: place)
    // Where the next one is written.
    try FileManager.default.createDirectory(
      at: first.directory.file("public/.\(Self.file).new"), withIntermediateDirectories: false)
    #expect(try await deny(9).status == 200)
    await first.service.stop()
    #expect(try Data(contentsOf: place) == last)
    #expect(first.service.currentDocument(Self.file)?.bytes != [UInt8](last))
    let path = first.directory.path("registry.db")
    try FileManager.default.moveItem(atPath: path, toPath: first.directory.path("away.db"))
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    for (copy, status) in [(last, 200), (older, 503)] {
      try copy.write(to: place)
      let second = try ScriptedService(storage: yaml, more: Self.published, sharing: first)
      try await second.service.start()
      let answer = try await second.get(Self.path)
      #expect(answer.status == status)
      #expect((answer.body == [UInt8](copy)) == (status == 200))
      await second.service.stop()
    }
  }

  @Test("a store that was open here is waited for though it refuses, and its copies are served")
  func refusesNow() async throws {
    let database = try await RedisServer.start()
    let first = try ScriptedService(storage: Self.storage(database), more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()
    let wrong = "{type: redis, dsn: \"redis://:wrong-secret@127.0.0.1:\(database.port)/0\"}"
    let second = try ScriptedService(storage: wrong, more: Self.published, sharing: first)
    try await second.service.start()
    #expect(try await second.get(Self.path).body == before.bytes)
    let told = second.log.events("store_away").compactMap { $0["reason"]?.stringValue }
    #expect(told.count == 1 && told.allSatisfy { $0.contains("wrong user or password") })
    await second.service.stop()
    #expect(second.log.events("store_refused").isEmpty)
    try await database.stop()
  }

  @Test("a store that refuses, and was never open here, ends the waiting, and the server")
  func refusal() async throws {
    let database = try await RedisServer.start()
    let wrong = database.dsn().replacing(
      RedisServer.password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "",
      with: "wrong")
    try await database.stop()
    let server = try ScriptedService(storage: "{type: redis, dsn: \"\(wrong)\"}")
    let socket = try NotifySocket(server.directory.path("notify"))
    let manager = ServiceManager(environment: ["NOTIFY_SOCKET": socket.name])
    let service = server.service
    let run = Task { () async -> String in
      do throws(RegistryServiceError) { try await service.run(manager: manager) } catch {
        return "\(error)"
      }
      return ""
    }
    #expect(await eventually { server.log.events("store_away").count == 1 })
    // Ready: else a start that lasts is ended, and begun anew.
    #expect(
      await eventually {
        socket.messages.contains {
          $0.hasPrefix("READY=1\nSTATUS=listening on ") && $0.contains("waiting for the store: ")
        }
      })
    try await database.launch()
    let said = await run.value
    #expect(said.contains("refuses: wrong user or password"), "\(said)")
    #expect(server.log.events("store_refused").count == 1)
    #expect(server.service.address == nil)
    // Without a wait it does not start at all.
    let again = try ScriptedService(storage: "{type: redis, dsn: \"\(wrong)\"}")
    await #expect(throws: RegistryServiceError.self) { try await again.service.start() }
    try await database.stop()
  }

  @Test(
    "a file that cannot be opened is waited for where a store was, and a mistake where none was")
  func files() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let first = try ScriptedService(storage: yaml, more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()
    let (path, away) = (first.directory.path("registry.db"), first.directory.path("away.db"))
    try FileManager.default.moveItem(atPath: path, toPath: away)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let second = try ScriptedService(storage: yaml, more: Self.published, sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.service.start()
    #expect(try await second.get(Self.path).body == before.bytes)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: away, toPath: path)
    #expect(await Self.comes(second))
    await second.service.stop()
    // The same, where no store was seen.
    let other = try makeKeyDirectory()
    let wrong = try configuration(
      """
      keys: [{fqdn: a.b}]
      storage: {type: sqlite, dsn: "\(other.path())"}
      tls: {dir: "\(other.path())"}
      """)
    #expect(throws: RegistryServiceError.self) { try RegistryService(configuration: wrong) }
  }

  @Test(
    "a start on a disk that takes no log serves the copies and waits, and so does a server that waits already"
  )
  func failingFile() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let first = try ScriptedService(storage: yaml, more: Self.published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()
    // As on a full disk, the log beside the database cannot be made.
    let log = first.directory.path("registry.db-wal")
    try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: false)
    let second = try ScriptedService(storage: yaml, more: Self.published, sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.service.start()
    #expect(second.service.health.awaitedStore?.reason.contains("unable to open") == true)
    #expect(try await second.get(Self.path).body == before.bytes)
    // Then the log can be made, and a page cannot be read.
    let file = try FileHandle(forUpdating: first.directory.file("registry.db"))
    try file.seek(toOffset: 100)
    let byte = try #require(try file.read(upToCount: 1))
    try file.seek(toOffset: 100)
    try file.write(contentsOf: Data([0xff]))
    try FileManager.default.removeItem(atPath: log)
    let health = second.service.health
    #expect(await eventually { health.awaitedStore?.reason.contains("malformed") == true })
    #expect(try await second.get(Self.path).body == before.bytes)
    #expect(second.log.events("store_refused").isEmpty)
    try file.seek(toOffset: 100)
    try file.write(contentsOf: byte)
    try file.close()
    #expect(await Self.comes(second))
    await second.service.stop()
  }

  @Test("the pauses grow, and stay below what a leader may be missed")
  func pauses() {
    let pauses = (0..<40).map { RegistryService.pause(after: $0) }
    #expect(pauses.prefix(6) == [250, 500, 1000, 2000, 4000, 5000])
    #expect(pauses.allSatisfy { $0 <= 5000 })
  }

  @Test(
    "what did not answer is absence, and so is all that a store that was open before may get over",
    arguments: [
      (StoreError.unreachable(place: "p", reason: "r"), true, true), (.busy, true, true),
      (.cannotOpen(path: "p", reason: "r"), false, true),
      (.denied(place: "p", reason: "r"), false, true), (.foreign(path: "p"), false, false),
      (.newerSchema(path: "p", found: 2, known: 1), false, false),
      (.failed(operation: "o", reason: "r"), false, true),
      (.damaged(path: "p", reason: "r"), false, true),
      (.withheld(path: "p", reason: "r"), false, true),
      (.seal(.vanished(record: "r")), false, false), (.closed, false, false),
    ])
  func absence(error: StoreError, isAlways: Bool, ifSeen: Bool) {
    #expect(error.isAbsence(wasOpen: false) == isAlways)
    #expect(error.isAbsence(wasOpen: true) == ifSeen)
  }
}
