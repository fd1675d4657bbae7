import SslPinningRules
import TestSupport
import Testing

@Suite("The service on every store") struct StoredServiceTests {
  private static let host = "www.example.com"
  private static let file = "www.example.com.json"

  /// The YAML of `storage` for an empty store of this kind, and what must not go before the service.
  static func storage(
    _ kind: StoreKind
  ) async throws -> (yaml: String, ground: (any Sendable)?) {
    switch kind {
    case .memory: return ("{type: memory}", nil)
    case .sqlite: return ("{type: sqlite, dsn: \"DIR/registry.db\"}", nil)
    case .fileSystem: return ("{type: fs, dump_dir: \"DIR/state\"}", nil)
    case .postgres:
      let server = try await PostgresServer.shared.value
      let dsn = server.dsn(try await server.makeDatabase())
      return ("{type: postgres, dsn: \"\(dsn)\", max_open_conns: 2}", server)
    case .redis:
      let server = try await RedisServer.shared.value
      return ("{type: redis, dsn: \"\(server.dsn(server.makeDatabase()))\"}", server)
    }
  }

  @Test(
    "publishes after a restart what it had published, without a probe", arguments: StoreKind.shared)
  func restart(_ kind: StoreKind) async throws {
    let (yaml, ground) = try await Self.storage(kind)
    let first = try ScriptedService(storage: yaml)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let published = try await first.get("/api/v1/\(Self.file)").body
    await first.service.stop()
    let second = try ScriptedService(storage: yaml, sharing: first)
    second.observer.show(.unreachable(reason: "test"), at: Self.host)
    try await second.start()
    #expect(try await second.get("/api/v1/\(Self.file)").body == published)
    await second.service.stop()
    #expect(first.log.events("storage_may_lose").isEmpty)
    withExtendedLifetime(ground) {}
  }

  @Test("warns at its start of a database that loses what it acknowledged")
  func warning() async throws {
    let careless = try await RedisServer.start(settings: [])
    let server = try ScriptedService(storage: "{type: redis, dsn: \"\(careless.dsn())\"}")
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    let warnings = server.log.events("storage_may_lose")
    #expect(warnings.count == 1)
    #expect(warnings.first?["message"]?.stringValue?.contains("appendonly no") == true)
    await server.service.stop()
    try await careless.stop()
  }

  @Test("waits for its database, and says why without the password")
  func missing() async throws {
    let closed = try ClosedPort()
    for yaml in [
      "{type: redis, dsn: \"redis://:secret@127.0.0.1:\(closed.port)/0\"}",
      "{type: postgres, dsn: \"postgres://u:secret@127.0.0.1:\(closed.port)/d\"}",
    ] {
      let server = try ScriptedService(storage: yaml)
      try await server.service.start()
      let said = server.log.events("store_away").first?["reason"]?.stringValue ?? ""
      #expect(said.hasPrefix("no connection to 127.0.0.1:\(closed.port)/"), "\(said)")
      #expect(!said.contains("secret"))
      await server.service.stop()
    }
  }
}
