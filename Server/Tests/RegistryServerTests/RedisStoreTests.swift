import FaultLab
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("The store in Redis") struct RedisStoreTests {
  @Test(
    "is addressed as the reference server does",
    arguments: [
      ("redis://localhost:6379/0", nil, nil, "localhost:6379/0"),
      (
        "redis://:p%40ss@r.example.com:1/2?maintnotifications=disabled", nil, "p@ss",
        "r.example.com:1/2"
      ),
      ("redis://u:p:q@r.example.com", "u", "p:q", "r.example.com:6379/0"),
      ("redis://u@r.example.com?db=3&dial_timeout=5s", "u", nil, "r.example.com:6379/3"),
      ("redis://[::1]:7/", nil, nil, "::1:7/0"),
      ("redis://", nil, nil, "localhost:6379/0"),
      ("redis://u:p@x@r:1/0", "u", "p@x", "r:1/0"),
    ] as [(String, String?, String?, String)])
  func dsn(_ text: String, _ user: String?, _ password: String?, _ place: String) throws {
    let dsn = try RedisDSN(text, isInsecure: true)
    #expect((dsn.user, dsn.password) == (user, password))
    #expect(dsn.place == place)
  }

  @Test(
    "is refused without a word of the password where the address cannot be read",
    arguments: [
      ("", "is no Redis; hint: write redis://"),
      ("postgres://u:secret@h/d", "is no Redis"),
      ("redis://u:sec/ret@h:1/0", "is no Redis"),
      ("redis://u:sec?ret@h:1/0", "is no Redis"),
      ("redis://u:secret%zz@h:1/0", "is no Redis"),
      ("redis://u:secret@h:0/0", "is no Redis"),
      ("redis://u:secret@h:x/0", "is no Redis"),
      ("redis://u:secret@h:99999/0", "is no Redis"),
      ("redis://u:secret@h/+1", "has no number of a database"),
      ("redis://u:secret@h/a", "has no number of a database"),
      ("redis://u:secret@h/0?x=secret", "has a member that is not known: \"x\"; hint: remove it"),
      ("redis://u:secret@h/0", "names a Redis on another machine, h, in clear text; hint: write"),
      ("redis://u:secret@127.0.0.1/0?ca=x", "has a member that is not known: \"ca\""),
    ])
  func unreadable(_ text: String, _ message: String) {
    let error = #expect(throws: StoreError.self) { try RedisStore(dsn: text) }
    let said = "\(error, default: "")"
    #expect(said.hasPrefix("storage.dsn " + message) && said.contains("; hint: "), "\(said)")
    #expect(!said.contains("secret") && !said.contains("ret@"))
  }

  @Test("names the place and never the password when Redis refuses or is not there")
  func messages() async throws {
    let server = try await RedisServer.shared.value
    let closed = try ClosedPort()
    let address = "127.0.0.1:\(server.port)"
    let cases: [(dsn: String, message: String)] = [
      ("redis://:wrong-secret@\(address)/0", "\(address)/0 refuses: wrong user or password"),
      ("redis://u:wrong-secret@\(address)/0", "\(address)/0 refuses: wrong user or password"),
      ("redis://\(address)/1", "\(address)/1 refuses: NOAUTH Authentication required."),
      (server.dsn(99_999), "select in \(address)/99999 failed: ERR DB index is out of range"),
      (
        "redis://:wrong-secret@127.0.0.1:\(closed.port)/0",
        "no connection to 127.0.0.1:\(closed.port)/0: connection refused; hint: "
      ),
    ]
    for (dsn, message) in cases {
      let store = try RedisStore(dsn: dsn)
      let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
      let said = "\(error, default: "")"
      #expect(said.hasPrefix(message), "\(said)")
      #expect(!said.contains("secret"))
    }
    let byName = try RedisStore(dsn: server.dsn(server.makeDatabase(), user: "default"))
    #expect(try await byName.record(named: "a") == nil)
  }

  @Test("logs in as its user, else as the default one, as the reference server always does")
  func users() async throws {
    let server = try await RedisServer.start()
    try await server.run("ACL", "SETUSER", "known", "on", ">hush", "~*", "&*", "+@all")
    let place = "127.0.0.1:\(server.port)/0"
    func name(_ dsn: String) throws -> String? {
      try RedisConnection(RedisDSN(dsn)).command("ACL", "WHOAMI").text
    }
    #expect(try name("redis://known:hush@\(place)") == "known")
    #expect(try name(server.dsn(user: "unknown")) == "default")
    #expect(try name(server.dsn()) == "default")
    #expect(throws: StoreError.self) { try name("redis://unknown:hush@\(place)") }
    // A Redis that asks for no password takes any, from the default user alone.
    try await server.run("CONFIG", "SET", "requirepass", "")
    #expect(try name("redis://unknown:hush@\(place)") == "default")
    #expect(try name("redis://:hush@\(place)") == "default")
    try await server.stop()
  }

  @Test(
    "says what Redis' settings do not keep",
    arguments: [
      (["appendonly": "yes", "appendfsync": "always"], nil),
      (["appendonly": "yes", "appendfsync": "everysec"], "up to two seconds"),
      (["appendonly": "yes", "appendfsync": "no"], "(appendfsync no)"),
      (["appendonly": "no", "appendfsync": "always"], "(appendonly no)"),
      ([:], "it does not say"),
      (
        [
          "appendonly": "yes", "appendfsync": "always", "maxmemory": "100",
          "maxmemory-policy": "allkeys-lru",
        ], "(maxmemory-policy allkeys-lru)"
      ),
      (
        [
          "appendonly": "yes", "appendfsync": "always", "maxmemory": "0",
          "maxmemory-policy": "allkeys-lru",
        ], nil
      ),
      (
        [
          "appendonly": "yes", "appendfsync": "always", "maxmemory": "100",
          "maxmemory-policy": "volatile-lru",
        ], nil
      ),
    ] as [([String: String], String?)])
  func durability(_ settings: [String: String], _ loss: String?) {
    let warning = RedisDurability.warning(settings)
    if let loss {
      #expect(warning?.contains(loss) == true, "\(warning ?? "")")
    } else {
      #expect(warning == nil)
    }
  }

  @Test("asks Redis for its settings when it first connects")
  func warning() async throws {
    let careful = try await RedisServer.shared.value
    let store = try RedisStore(dsn: careful.dsn(careful.makeDatabase()))
    _ = try await store.record(named: "a")
    #expect(store.warning == nil)
    let careless = try await RedisServer.start(settings: [])
    let other = try RedisStore(dsn: careless.dsn())
    #expect(other.warning == nil)
    _ = try await other.record(named: "a")
    #expect(other.warning?.contains("appendonly no") == true)
    try await careless.stop()
  }

  @Test("sends its scripts again to a Redis that has forgotten them")
  func forgottenScripts() async throws {
    let server = try await RedisServer.shared.value
    let store = try RedisStore(
      dsn: server.dsn(server.makeDatabase()), pool: ConnectionPoolConfiguration(maxOpen: 1))
    for version in Int64(0)..<3 {
      let outcome = try await store.replace("a", version: version, with: [1], history: [[1]])
      #expect(outcome == .replaced(version: version + 1))
      try await server.run("SCRIPT", "FLUSH")
    }
    #expect(try await store.history(of: "a", before: nil, limit: 9).count == 3)
  }

  @Test(
    "drops what somebody wrote in the place of a history with the next replacement",
    arguments: [0, 1])
  func strangeHistory(_ version: Int64) async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    if version == 1 { _ = try await store.replace("a", version: 0, with: [1], history: [[1]]) }
    try await server.run("DEL", "ssl-pinning:history:{a}", in: database)
    try await server.run("SET", "ssl-pinning:history:{a}", "x", in: database)
    let outcome = try await store.replace("a", version: version, with: [2], history: [[2], [3]])
    #expect(outcome == .replaced(version: version + 1))
    let history = try await store.history(of: "a", before: nil, limit: 9)
    #expect(history.map(\.bytes) == [[3], [2]])
  }

  @Test(
    "takes a version in digits that no server writes for damage, which can be replaced",
    arguments: ["+5", "05", "-0", "-5", "-1000000000000000000", "5 ", "5.0", "x", ""])
  func strangeVersion(_ version: String) async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    _ = try await store.replace("a", version: 0, with: [1])
    try await server.run("HSET", "ssl-pinning:record:{a}", "version", version, in: database)
    let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
    if case .damaged? = error {} else { Issue.record("\(String(describing: error))") }
    let written = try await store.overwrite("a") { _ in [2] }
    #expect(written == 1)
    #expect(try await store.record(named: "a") == StoredRecord(version: 1, bytes: [2]))
  }

  @Test(
    "counts entries by numbers that a server may have given, whatever somebody wrote beside them",
    arguments: [
      ("0", 0), ("40", 40), ("9007199254740000", 9_007_199_254_740_000), ("9007199254740991", 0),
      ("9223372036854773760", 0), ("9223372036854775807", 0), ("1e300", 0), ("-1", 0), ("1.5", 0),
      ("nan", 0), ("inf", 0), ("x", 0), ("", 0),
    ] as [(String, Int64)])
  func strangeNumbers(_ forgotten: String, before: Int64) async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    for version in Int64(0)..<3 {
      _ = try await store.replace("a", version: version, with: [1], history: [[UInt8(version)]])
    }
    try await server.run("SET", "ssl-pinning:forgotten:{a}", forgotten, in: database)
    let found = try await store.history(of: "a", before: nil, limit: 1000)
    #expect(found.map(\.number) == [before + 3, before + 2, before + 1])
    #expect(found.map(\.bytes) == [[2], [1], [0]])
    try await store.forgetHistory(of: "a", through: before + 2)
    #expect(try await store.history(of: "a", before: nil, limit: 9).map(\.number) == [before + 3])
  }

  @Test(
    "has no page of entries whose numbers no server gave, also if Redis answers with them",
    arguments: [
      (1, [2, 1]), (Int64.max - 3, [.max - 2, .max - 3]), (.max - 2, []), (.max, []), (0, []),
      (.min, []),
    ] as [(Int64, [Int64])])
  func strangeAnswers(_ first: Int64, _ numbers: [Int64]) {
    let found = RedisStore.entries([.integer(first), .bytes([1]), .bytes([2])])
    #expect(found.map(\.number) == numbers)
  }

  @Test("says which version is in force after a replacement, also beyond what Lua counts exactly")
  func largeVersions() async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    _ = try await store.replace("a", version: 0, with: [1])
    let version: Int64 = 1 << 53
    try await server.run("HSET", "ssl-pinning:record:{a}", "version", "\(version)", in: database)
    let outcome = try await store.replace("a", version: version, with: [2])
    #expect(outcome == .replaced(version: version + 1))
    #expect(try await store.record(named: "a")?.version == version + 1)
    try await server.run("HSET", "ssl-pinning:record:{a}", "version", "\(Int64.max)", in: database)
    await #expect(throws: StoreError.self) { try await store.replace("a", version: .max, with: []) }
    #expect(try await store.record(named: "a")?.bytes == [2])
  }

  @Test("keeps the changes of one database from the listeners of another")
  func databases() async throws {
    let server = try await RedisServer.shared.value
    let (one, other) = (server.makeDatabase(), server.makeDatabase())
    let stores = (try RedisStore(dsn: server.dsn(one)), try RedisStore(dsn: server.dsn(other)))
    var told = stores.0.changes().makeAsyncIterator()
    // All of them, once it listens.
    #expect(await told.next() == "")
    _ = try await stores.1.replace("other", version: 0, with: [1])
    _ = try await stores.0.replace("own", version: 0, with: [1])
    #expect(await told.next() == "own")
    #expect(try await stores.0.record(named: "other") == nil)
  }

  @Test("connects anew if it is at a replica: its name may lead to another Redis by now")
  func replica() async throws {
    let (old, new) = (try await RedisServer.start(), try await RedisServer.start())
    let relay = try SwitchableRelay(to: .loopback(old.port))
    let dsn = old.dsn().replacing(":\(old.port)/", with: ":\(relay.port)/")
    let (store, other) = (try RedisStore(dsn: dsn), try RedisStore(dsn: dsn))
    _ = try await store.replace("a", version: 0, with: [1])
    let leadership = try #require(try await store.lead())
    #expect(try await other.lead() == nil)
    // A planned fail-over cuts no connection.
    relay.redirect(to: .loopback(new.port), closingConnections: false)
    try await old.run("REPLICAOF", "127.0.0.1", "\(new.port)")
    await #expect(throws: StoreError.self) { try await store.replace("a", version: 1, with: [2]) }
    #expect(try await store.replace("a", version: 0, with: [2]) == .replaced(version: 1))
    await #expect(throws: StoreError.self) { try await other.lead() }
    await leadership.resign()
    #expect(try await other.lead() != nil)
    for store in [store, other] { await store.close() }
    for server in [old, new] { try await server.stop() }
  }

  @Test(
    "leads after somebody else's key, also after one that would last for ever",
    arguments: [nil, 86_400_000] as [Int?])
  func endlessKey(lifetime: Int?) async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    try await server.run("SET", "ssl-pinning:leader", "a stranger", in: database)
    if let lifetime {
      try await server.run("PEXPIRE", "ssl-pinning:leader", "\(lifetime)", in: database)
    }
    #expect(try await store.lead() == nil)
    var leadership: (any StoreLeadership)?
    for _ in 0..<200 where leadership == nil {
      // why: another one's key can only be tried again.
      try await Task.sleep(nanoseconds: 100_000_000)
      leadership = try await store.lead()
    }
    #expect(leadership != nil)
    await leadership?.resign()
    await store.close()
  }

  @Test("follows, if its user may not look when the leader's key ends")
  func unseenEnd() async throws {
    let server = try await RedisServer.start()
    try await server.run(
      "ACL", "SETUSER", "narrow", "on", ">hush", "~*", "&*", "+@all", "-pttl", "-pexpire")
    let store = try RedisStore(dsn: "redis://narrow:hush@127.0.0.1:\(server.port)/0")
    try await server.run("SET", "ssl-pinning:leader", "another server", "PX", "60000")
    #expect(try await store.lead() == nil)
    await store.close()
    try await server.stop()
  }

  @Test("leads no longer once somebody else has the key")
  func stolen() async throws {
    let server = try await RedisServer.shared.value
    let database = server.makeDatabase()
    let store = try RedisStore(dsn: server.dsn(database))
    let leadership = try #require(try await store.lead())
    try await server.run("SET", "ssl-pinning:leader", "somebody else", in: database)
    await leadership.ended()
    // Nor does it take it away from whoever has it.
    #expect(try await store.lead() == nil)
    await leadership.resign()
    let holder = try await server.run("GET", "ssl-pinning:leader", in: database)
    #expect(holder == "somebody else\n")
  }
}
