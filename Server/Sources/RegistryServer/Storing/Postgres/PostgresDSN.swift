import CPostgreSQL

/// Which database, in libpq's words: `postgres://user:password@host:port/database?sslmode=…` or
/// `host=… dbname=…`, and the settings that a server needs to notice a cut network in seconds.
///
/// - Every parameter of libpq is taken, `sslmode`, `sslrootcert` and several hosts included;
///   `maintnotifications`, which the field's configurations carry, is dropped.
/// - The password is in ``parameters`` only, and never in a message.
struct PostgresDSN: Sendable {
  /// What libpq connects with.
  let parameters: [(keyword: String, value: String)]
  /// The database without user and password, for messages.
  let place: String

  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  init(_ text: String) throws(StoreError) {
    var given = try Self.parse(Self.withoutForeignMembers(text))
    let names = ["host", "hostaddr", "port", "dbname"].map { given[$0] ?? "" }
    // A password that is not encoded as it should be ends up here, and would be shown.
    guard names.allSatisfy({ !$0.contains("@") }) else { throw Self.unreadable }
    let host = names[0].isEmpty ? (names[1].isEmpty ? "localhost" : names[1]) : names[0]
    place = "\(host):\(names[2].isEmpty ? "5432" : names[2])/\(names[3])"
    for (keyword, value) in Self.standard where given[keyword] == nil { given[keyword] = value }
    given["options"] = [Self.serverSettings, given["options"] ?? ""].joined(separator: " ")
    parameters = given.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
  }

  /// Seconds to connect, and until a connection that nothing comes over counts as cut.
  private static let standard = [
    ("application_name", "ssl-pinning"), ("connect_timeout", "3"), ("tcp_user_timeout", "3000"),
    ("keepalives_idle", "2"), ("keepalives_interval", "1"), ("keepalives_count", "3"),
  ]

  /// The server cuts a client that is gone, and with it the lock of a leader, after 6 s: later than
  /// the client notices, so that the old leader knows before there is a new one.
  private static let serverSettings = [
    ("statement_timeout", "5000"), ("lock_timeout", "4000"),
    ("idle_in_transaction_session_timeout", "10000"), ("tcp_keepalives_idle", "2"),
    ("tcp_keepalives_interval", "1"), ("tcp_keepalives_count", "4"), ("tcp_user_timeout", "6000"),
    ("default_transaction_isolation", "read\\ committed"),
  ].map { "-c \($0.0)=\($0.1)" }.joined(separator: " ")

  private static let unreadable = StoreError.invalidDSN(
    reason: "is no PostgreSQL database",
    hint: "write postgres://user:password@host:port/database?sslmode=disable, with what is special"
      + " in the password percent-encoded")

  private static func parse(_ text: String) throws(StoreError) -> [String: String] {
    // Its own message would show what it could not read, which may be a password.
    guard !text.isEmpty, let options = PQconninfoParse(text, nil) else { throw unreadable }
    defer { PQconninfoFree(options) }
    var given: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val {
        given[String(cString: keyword)] = String(cString: value)
      }
      option += 1
    }
    return given
  }

  private static func withoutForeignMembers(_ text: String) -> String {
    guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://"),
      // A question mark may be in the password too.
      let mark = text[(text.lastIndex(of: "@") ?? text.startIndex)...].firstIndex(of: "?")
    else { return text }
    let members = text[text.index(after: mark)...].split(separator: "&")
      .filter { !$0.hasPrefix("maintnotifications=") }
    return text[..<mark] + (members.isEmpty ? "" : "?" + members.joined(separator: "&"))
  }
}
