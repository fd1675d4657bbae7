import Foundation

/// Which Redis, as the field's configurations write it:
/// `redis://user:password@host:port/number?…`. User, password, port and number may be left out.
///
/// - Query members of the field's client that are about its own connections are taken and ignored
///   (`maintnotifications`, `dial_timeout`, …); `db` is the number; others are refused.
/// - The password is never in a message.
struct RedisDSN: Sendable, Equatable {
  var user: String?
  var password: String?
  var host: String
  var port: Int32
  var database: Int

  /// The database without user and password, for messages.
  var place: String { "\(host):\(port)/\(database)" }

  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  init(_ text: String) throws(StoreError) {
    if text.hasPrefix("rediss://") {
      throw .invalidDSN(
        reason: "asks for Redis over TLS, which is not built in",
        hint: "let a tunnel such as stunnel do TLS, and write redis:// with its address")
    }
    guard text.hasPrefix("redis://") else { throw Self.unreadable }
    let rest = text.dropFirst("redis://".count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let parts = rest[authority.endIndex...].split(
      separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    // A password that is not encoded as it should be ends up behind the authority.
    guard !rest[authority.endIndex...].contains("@") else { throw Self.unreadable }
    let at = authority.lastIndex(of: "@")
    let place = authority[(at.map(authority.index(after:)) ?? authority.startIndex)...]
    guard let (host, port) = Self.address(place) else { throw Self.unreadable }
    (self.host, self.port) = (host, port)
    if let at { (user, password) = try Self.credentials(authority[..<at]) }
    database = 0
    let path = parts.first?.dropFirst() ?? ""
    if !path.isEmpty { database = try Self.number(path) }
    for member in parts.dropFirst().first?.split(separator: "&") ?? [] {
      let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      switch pair[0] {
      case "db": database = try Self.number(pair.dropFirst().first ?? "")
      case let name where Self.foreign.contains(String(name)): continue
      case let name:
        throw .invalidDSN(
          reason: "has a member that is not known: \"\(name.prefix(40))\"", hint: "remove it")
      }
    }
  }

  private static let unreadable = StoreError.invalidDSN(
    reason: "is no Redis",
    hint: "write redis://user:password@host:port/number, with what is special in the password"
      + " percent-encoded")

  private static let foreign: Set = [
    "maintnotifications", "protocol", "client_name", "max_retries", "min_retry_backoff",
    "max_retry_backoff", "dial_timeout", "read_timeout", "write_timeout",
    "context_timeout_enabled", "pool_fifo", "pool_size", "pool_timeout", "min_idle_conns",
    "max_idle_conns", "max_active_conns", "conn_max_idle_time", "conn_max_lifetime",
    "idle_timeout", "idle_check_frequency", "max_conn_age",
  ]

  private static func number(_ text: some StringProtocol) throws(StoreError) -> Int {
    guard let number = Int(text), number >= 0, text.utf8.first != UInt8(ascii: "+") else {
      throw .invalidDSN(
        reason: "has no number of a database behind the address", hint: "write it as in /0")
    }
    return number
  }

  private static func credentials(
    _ text: Substring
  ) throws(StoreError) -> (user: String?, password: String?) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let user = parts[0].removingPercentEncoding,
      let password = (parts.dropFirst().first ?? "").removingPercentEncoding
    else { throw unreadable }
    return (user.isEmpty ? nil : user, password.isEmpty ? nil : password)
  }

  private static func address(_ text: Substring) -> (host: String, port: Int32)? {
    var (host, port) = (text, Substring("6379"))
    if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
      host = text[text.index(after: text.startIndex)..<end]
      let tail = text[text.index(after: end)...]
      guard tail.isEmpty || tail.hasPrefix(":") else { return nil }
      if !tail.isEmpty { port = tail.dropFirst() }
    } else if let colon = text.firstIndex(of: ":") {
      (host, port) = (text[..<colon], text[text.index(after: colon)...])
    }
    guard let number = UInt16(port), number > 0, port.allSatisfy(\.isNumber), !host.contains("@")
    else { return nil }
    return (host.isEmpty ? "localhost" : String(host), Int32(number))
  }
}
