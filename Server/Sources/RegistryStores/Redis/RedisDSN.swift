import Foundation
import SslPinningPlatform
import TLSTools

/// Which Redis, as the reference server's configurations write it:
/// `redis://user:password@host:port/number?…`, and `rediss` for TLS. User, password, port and number may be left out.
///
/// - `rediss` is TLS with a chain that ends in the system's anchors, or in those of the PEM file that the member `ca`
///   names, and with the host's name. There is no way to leave that out.
/// - In clear text Redis is on this machine, unless the operator says `storage.insecure`.
/// - Query members of the reference server's client that are about its own connections are taken and ignored
///   (`maintnotifications`, `dial_timeout`, …); `db` is the number; others are refused.
/// - The password is never in a message.
package struct RedisDSN: Sendable, Equatable {
  var user: String?
  var password: String?
  var host: String
  var port: Int32
  var database: Int
  /// Whether the connection is under TLS.
  var isTLS: Bool
  /// The PEM file with the anchors of its chain; `nil` for the system's.
  var anchors: String?

  /// The database without user and password, for messages.
  var place: String { "\(host):\(port)/\(database)" }

  /// - Parameter isInsecure: whether clear text may leave this machine.
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  package init(_ text: String, isInsecure: Bool = false) throws(StoreError) {
    guard let scheme = text.firstRange(of: "://"),
      case let name = text[..<scheme.lowerBound].lowercased(), ["redis", "rediss"].contains(name)
    else { throw Self.unreadable }
    isTLS = name == "rediss"
    let rest = text[scheme.upperBound...]
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
      case "ca" where isTLS:
        anchors = pair.dropFirst().first.flatMap { $0.removingPercentEncoding }
      case let name where Self.foreign.contains(String(name)): continue
      case let name:
        throw .invalidDSN(
          reason: "has a member that is not known: \"\(name.prefix(40))\"", hint: "remove it")
      }
    }
    guard isTLS || isInsecure || DatabaseHost.isHere(self.host) else {
      throw .invalidDSN(
        reason: "names a Redis on another machine, \(self.host), in clear text",
        hint: "write rediss://, with ?ca=FILE for a CA of your own; or set storage.insecure to true"
      )
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

extension RedisDSN {
  /// What the chain of a Redis has to end in, as it is now.
  ///
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  func trustAnchors() throws(StoreError) -> ChainValidator {
    var bytes: [UInt8]?
    if let anchors {
      do throws(SmallFile.Failure) { bytes = try SmallFile.read(anchors, limit: 16 << 20) } catch {
        throw unusable("\(error)")
      }
    }
    do throws(CertificateError) {
      return if let bytes { try ChainValidator(anchorsIn: bytes) } else { try .system() }
    } catch { throw unusable("\(error)") }
  }

  private func unusable(_ reason: String) -> StoreError {
    let name = anchors ?? "the system"
    return .invalidDSN(
      reason: "asks for TLS, and the anchors in \(name) cannot be used: \(reason)",
      hint: "?ca=FILE names a PEM file")
  }
}
