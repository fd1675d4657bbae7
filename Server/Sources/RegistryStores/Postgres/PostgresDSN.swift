import CPostgreSQL
import Foundation

/// Which database, in libpq's words: `postgres://user:password@host:port/database?sslmode=…` or
/// `host=… dbname=…`, and the settings that a server needs to notice a cut network in seconds.
///
/// - Every parameter of libpq is taken, `sslmode`, `sslrootcert` and several hosts included;
///   `maintnotifications`, which the reference server's configurations carry, is dropped.
/// - A database on another machine is talked to under TLS with `sslmode=verify-full` alone, unless the operator says
///   `storage.insecure`. `verify-ca` takes every certificate of its CA, whoever holds it, and the other modes take any.
///   Counted is what libpq would go by: `hostaddr`, every host of a list, a service file and the environment
///   (`PGHOST`, `PGSSLMODE`, …) included. A Unix socket and this machine's own addresses need no TLS.
/// - The password is in ``parameters`` only, and never in a message.
package struct PostgresDSN: Sendable {
  /// What libpq connects with.
  let parameters: [(keyword: String, value: String)]
  /// The database without user and password, for messages.
  package let place: String

  /// - Parameter isInsecure: whether another machine may be talked to without verified TLS.
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  package init(_ text: String, isInsecure: Bool = false) throws(StoreError) {
    var given = try Self.parse(Self.withoutForeignMembers(text))
    let used = try Self.used(given)
    // What was judged is what is dialled, whatever a service file says by then.
    for keyword in ["host", "hostaddr", "port", "sslmode"] { given[keyword] = used[keyword] }
    let names = ["host", "hostaddr", "port", "dbname"].map { given[$0] ?? "" }
    // A password that is not encoded as it should be ends up here, and would be shown.
    guard names.allSatisfy({ !$0.contains("@") }) else { throw Self.unreadable }
    if !isInsecure, let host = Self.hostElsewhere(used) {
      guard used["sslmode"] == "verify-full" else {
        throw .invalidDSN(
          reason: "names a database on another machine, \(host), without verified TLS"
            + " (sslmode=\(used["sslmode"] ?? "prefer"))",
          hint: "write sslmode=verify-full, and sslrootcert=FILE; or set storage.insecure to true")
      }
      // Where both sides have Kerberos, libpq would take that in place of TLS.
      given["gssencmode"] = "disable"
    }
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
    hint: "write postgres://user:password@host:port/database?sslmode=verify-full, with what is"
      + " special in the password percent-encoded")

  private static func parse(_ text: String) throws(StoreError) -> [String: String] {
    // Its own message would show what it could not read, which may be a password.
    guard !text.isEmpty, let options = PQconninfoParse(text, nil) else { throw unreadable }
    defer { PQconninfoFree(options) }
    return values(of: options)
  }

  private static func values(
    of options: UnsafeMutablePointer<PQconninfoOption>
  ) -> [String: String] {
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val {
        values[String(cString: keyword)] = String(cString: value)
      }
      option += 1
    }
    return values
  }

  /// What libpq would go by: its own answer, service file and environment included. It dials nothing: the last thing
  /// that it probes before it would is a value that it does not know.
  private static func used(_ given: [String: String]) throws(StoreError) -> [String: String] {
    var asked = given
    asked["target_session_attrs"] = "none: nothing is dialled"
    let keywords = asked.keys.map { strdup($0) } + [nil]
    let values = asked.keys.map { strdup(asked[$0] ?? "") } + [nil]
    defer { for text in keywords + values { free(text) } }
    let connection = PQconnectStartParams(
      keywords.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 0)
    defer { PQfinish(connection) }
    let options = PQconninfo(connection)
    defer { PQconninfoFree(options) }
    let used = options.map { Self.values(of: $0) } ?? [:]
    // It always has a mode, unless it could not put its settings together.
    guard used["sslmode"] != nil else {
      let reason = PostgresMessage(String(cString: PQerrorMessage(connection))).text
      throw .invalidDSN(
        reason: "cannot be used: \(reason)", hint: "is the service of that name in its file?")
    }
    return used
  }

  /// The first host that is not on this machine; an address counts in place of its name.
  private static func hostElsewhere(_ used: [String: String]) -> String? {
    let (names, addresses) = (list(used["host"]), list(used["hostaddr"]))
    return (0..<max(names.count, addresses.count)).lazy.map { index in
      let address = addresses.indices.contains(index) ? addresses[index] : ""
      return address.isEmpty && names.indices.contains(index) ? names[index] : address
    }.first { host in
      // An empty one is the Unix socket in its usual place.
      !host.isEmpty && !host.hasPrefix("/") && !DatabaseHost.isHere(host)
    }
  }

  private static func list(_ text: String?) -> [String] {
    (text ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
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
