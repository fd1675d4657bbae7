import TestSupport
import Testing

@testable import RegistryServer

@Suite("The address of a PostgreSQL database") struct PostgresDSNTests {
  @Test(
    "is read in both forms",
    arguments: [
      ("postgres://u:p%40@db.example.com:6432/app?sslmode=disable", "db.example.com:6432/app"),
      ("postgres://u:p?p@h/app?maintnotifications=disabled", "h:5432/app"),
      ("postgresql://u@db.example.com/app", "db.example.com:5432/app"),
      ("host=db.example.com port=6432 dbname=app user=u password='p @'", "db.example.com:6432/app"),
      ("postgres://u:p@/app?host=/run/postgresql", "/run/postgresql:5432/app"),
      ("postgres://u:p@[::1]:1/app?maintnotifications=disabled", "::1:1/app"),
      ("postgres://u:p@a,b:5/app?maintnotifications=x&target_session_attrs=any", "a,b:,5/app"),
    ])
  func forms(_ text: String, _ place: String) throws {
    let dsn = try PostgresDSN(text)
    #expect(dsn.place == place)
    #expect(dsn.parameters.contains { $0.keyword == "user" && $0.value == "u" })
  }

  @Test("has times in which a cut network is noticed, unless it says other ones")
  func times() throws {
    func value(_ keyword: String, _ text: String) throws -> String? {
      try PostgresDSN(text).parameters.first { $0.keyword == keyword }?.value
    }
    #expect(try value("connect_timeout", "postgres://h/d") == "3")
    #expect(try value("connect_timeout", "postgres://h/d?connect_timeout=9") == "9")
    let options = try #require(try value("options", "postgres://h/d?options=-c%20a.b%3D1"))
    #expect(options.contains("-c statement_timeout=5000") && options.hasSuffix(" -c a.b=1"))
  }

  @Test(
    "is refused without a word of the password where it cannot be read",
    arguments: [
      "", "registry.db", "mysql://u:secret@h/d", "postgres://u:sec@ret@h/d",
      "postgres://u:sec/ret@h/d", "postgres://u:secret@h/d?nothing=1",
      "host=h password=secret nothing=1", "postgres://u:sec%ret@h/d",
    ])
  func unreadable(_ text: String) throws {
    let error = #expect(throws: StoreError.self) { try PostgresStore(dsn: text) }
    let message = "\(error, default: "")"
    #expect(message.hasPrefix("storage.dsn is no PostgreSQL database; hint: write postgres://"))
    #expect(!message.contains("sec") && !message.contains("ret@"))
  }

  @Test("names the place and never the password when the server refuses or is not there")
  func messages() async throws {
    let server = try await PostgresServer.shared.value
    let closed = try ClosedPort()
    let cases: [(dsn: String, message: String)] = [
      (
        "postgres://tester:wrong-secret@127.0.0.1:\(server.port)/postgres",
        "127.0.0.1:\(server.port)/postgres refuses: password authentication failed for user"
      ),
      (
        server.dsn("nowhere"),
        "127.0.0.1:\(server.port)/nowhere refuses: database \"nowhere\" does not exist"
      ),
      (
        "postgres://u:wrong-secret@127.0.0.1:\(closed.port)/app",
        "no connection to 127.0.0.1:\(closed.port)/app: connection to server at \"127.0.0.1\","
          + " port \(closed.port) failed: Connection refused"
      ),
      (
        "postgres://u:wrong-secret@127.0.0.1:\(server.port)/app?sslmode=nonsense",
        "no connection to 127.0.0.1:\(server.port)/app: invalid sslmode value: \"nonsense\""
      ),
    ]
    for (dsn, message) in cases {
      let store = try PostgresStore(dsn: dsn)
      let error = await #expect(throws: StoreError.self) { try await store.record(named: "a") }
      let said = "\(error, default: "")"
      #expect(said.hasPrefix(message), "\(said)")
      #expect(said.contains("; hint: ") && !said.contains("secret"))
    }
  }
}
