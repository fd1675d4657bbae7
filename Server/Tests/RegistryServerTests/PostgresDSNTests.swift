import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

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
    let dsn = try PostgresDSN(text, isInsecure: true)
    #expect(dsn.place == place)
    #expect(dsn.parameters.contains { $0.keyword == "user" && $0.value == "u" })
  }

  @Test(
    "leaves this machine under verified TLS alone, unless somebody says so",
    arguments: [
      ("postgres://db.example/d", "db.example"), ("postgres://192.0.2.1/d", "192.0.2.1"),
      ("postgres://[2001:db8::1]/d", "2001:db8::1"), ("postgres://127.1/d", "127.1"),
      ("postgres://db.example/d?sslmode=disable", "db.example"),
      ("postgres://db.example/d?sslmode=require", "db.example"),
      ("postgres://db.example/d?sslmode=verify-ca", "db.example"),
      ("postgres://127.0.0.1,db.example/d", "db.example"),
      ("host=127.0.0.1 hostaddr=192.0.2.1 dbname=d", "192.0.2.1"),
      ("host=a,localhost hostaddr=127.0.0.1,192.0.2.1 dbname=d", "192.0.2.1"),
      ("postgres://db.example/d?sslmode=verify-full", nil), ("postgres://127.9.9.9/d", nil),
      ("postgres://[::1]/d", nil), ("postgres://localhost/d?sslmode=disable", nil),
      ("dbname=d", nil), ("host=/run/postgresql dbname=d", nil),
      ("host=db.example hostaddr=127.0.0.1 dbname=d", nil),
    ] as [(String, String?)])
  func links(_ text: String, _ host: String?) throws {
    if let host {
      let error = #expect(throws: StoreError.self) { try PostgresDSN(text) }
      #expect(
        "\(error, default: "")".hasPrefix(
          "storage.dsn names a database on another machine, \(host), without verified TLS"))
    } else {
      let parameters = try PostgresDSN(text).parameters
      // What libpq would take in place of TLS.
      let isElsewhere = text.contains("verify-full")
      #expect(
        parameters.contains { $0.keyword == "gssencmode" && $0.value == "disable" } == isElsewhere)
    }
    _ = try PostgresDSN(text, isInsecure: true)
  }

  @Test("a server proves its name and its CA under verify-full")
  func verified() async throws {
    let server = try await PostgresServer.start()
    let directory = try TemporaryDirectory()
    let (own, other) = (
      try CertificateAuthority.makeRoot(name: "Own"),
      try CertificateAuthority.makeRoot(name: "Other")
    )
    let identity = try own.issue(names: ["db.test"])
    // As the server's own user: it takes no key that others can read.
    for (name, pem) in [("tls.crt", identity.leaf.pem), ("tls.key", try identity.key.pem)] {
      try await server.run(
        "COPY (SELECT unnest(string_to_array('\(pem)', chr(10))))"
          + " TO PROGRAM 'umask 077; cat > \(name)'")
    }
    for setting in ["ssl_cert_file = 'tls.crt'", "ssl_key_file = 'tls.key'", "ssl = on"] {
      try await server.run("ALTER SYSTEM SET \(setting)")
    }
    try await server.stop()
    try await server.launch()
    let base = server.dsn().replacing("sslmode=disable", with: "sslmode=verify-full")
    func connect(_ name: String, _ authority: CertificateAuthority) throws {
      let file = try directory.write(authority.root.pem, to: "ca.pem")
      let dsn =
        base.replacing("@127.0.0.1:", with: "@\(name):")
        + "&hostaddr=127.0.0.1&sslrootcert=\(file.path(percentEncoded: false))"
      let connection = try PostgresConnection(PostgresDSN(dsn))
      let row = try connection.query(
        "SELECT ssl::int::int8 FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
      ).first
      #expect(row?.integer(0) == 1)
    }
    try connect("db.test", own)
    for (name, authority, reason) in [
      ("db.example", own, "does not match host name"), ("db.test", other, "verify failed"),
    ] {
      let error = #expect(throws: StoreError.self) { try connect(name, authority) }
      let said = "\(error, default: "")"
      #expect(said.contains(reason), "\(said)")
    }
    try await server.stop()
  }

  @Test("has times in which a cut network is noticed, unless it says other ones")
  func times() throws {
    func value(_ keyword: String, _ text: String) throws -> String? {
      try PostgresDSN(text, isInsecure: true).parameters.first { $0.keyword == keyword }?.value
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

  @Test(
    "a refused connection is one that may pass, or none, by its code and in any language",
    arguments: [
      ("FATAL:  57P03: das Datenbanksystem startet", false, "das Datenbanksystem startet"),
      ("FATAL:  57014: Anmeldung wird abgebrochen", false, "anmeldung wird abgebrochen"),
      ("ВАЖНО:  53300: слишком много подключений", false, "слишком много подключений"),
      ("FATAL:  55000: keine Verbindungen", false, "keine Verbindungen"),
      ("FATAL:  08006: Verbindung verloren", false, "verbindung verloren"),
      ("FATAL:  28P01: Passwort-Authentifizierung: nein", true, "passwort-Authentifizierung: nein"),
      ("ВАЖНО:  28P01: пароль", true, "пароль"),
      ("FATAL:  3D000: database \"x\" does not exist", true, "database \"x\" does not exist"),
      ("FATAL:  08P01: no such user: u", true, "no such user: u"),
      // No code, no denial: nobody knows what it is.
      ("FATAL:  starting", false, "starting"),
    ])
  func refusals(_ said: String, isDenied: Bool, reason: String) {
    let message = PostgresMessage("connection to server at \"h\" failed: \(said)\nLOCATION:  f")
    #expect(message.isFromServer)
    switch message.connectError("p") {
    case .denied("p", let found): #expect(isDenied && found == reason)
    case .unreachable("p", let found): #expect(!isDenied && found == reason)
    case let error: Issue.record("\(error)")
    }
    let nobody = "connection to server at \"h\" failed: refused\n\tIs the server running?"
    #expect(!PostgresMessage(nobody).isFromServer)
    // Of a name with two addresses, where only the second one answers.
    let both = PostgresMessage("\(nobody)\nconnection to server at \"h\" failed: \(said)")
    #expect(both.connectError("p") == message.connectError("p"))
  }

  @Test("names the place and never the password when the server refuses or is not there")
  func messages() async throws {
    let server = try await PostgresServer.shared.value
    let closed = try ClosedPort()
    let shut = try await server.makeDatabase()
    try await server.run("ALTER DATABASE \(shut) ALLOW_CONNECTIONS false")
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
        server.dsn(shut),
        "no connection to 127.0.0.1:\(server.port)/\(shut): database \"\(shut)\" is not currently"
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
