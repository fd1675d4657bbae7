import SslPinningRules
import TLSTools

/// Why no tunnel is opened, as the status of the answer.
///
/// The registry takes 403 and 5xx for a word about the endpoint, and everything else for one about the vantage point.
enum TunnelRefusal: Int, Error, Equatable {
  case malformed = 400
  case notEnrolled = 403
  case noTunnel = 405
  case tooOften = 429
  case tooLong = 431
  case unreachable = 502

  private var reason: String {
    switch self {
    case .malformed: "Bad Request"
    case .notEnrolled: "Forbidden"
    case .noTunnel: "Method Not Allowed"
    case .tooOften: "Too Many Requests"
    case .tooLong: "Request Header Fields Too Large"
    case .unreachable: "Bad Gateway"
    }
  }

  var answer: [UInt8] {
    Array("HTTP/1.1 \(rawValue) \(reason)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8)
  }
}

/// A client's CONNECT (RFC 9110 section 9.3.6), and nothing else.
///
/// - The head ends at its first empty line, within ``limit`` bytes. Nothing may stand behind it in what was read with it:
///   bytes there could be another request.
/// - Each line ends in CR LF; no other control characters, nothing beyond ASCII, no folded lines.
/// - `Host` stands there once and names the same host and port.
/// - A field that gives a request a body, or another protocol, is refused; others are ignored, but for
///   ``TunnelAddress``.
struct TunnelRequest {
  static let limit = 2048
  private static let mostFields = 16
  private static let refused: Set<String> = [
    "content-length", "transfer-encoding", "trailer", "upgrade", "expect",
  ]

  let target: VantageTarget
  /// Which of the name's addresses is to be dialled, if it has that here.
  let address: IPAddress?

  /// What is asked for; `nil` if the head has not come to its end.
  static func read(_ bytes: [UInt8]) throws(TunnelRefusal) -> TunnelRequest? {
    guard bytes.count <= limit else { throw .tooLong }
    // What can be no request is not waited for.
    guard isText(bytes) else { throw .malformed }
    let lines = bytes.split(separator: lineFeed, omittingEmptySubsequences: false)
      .map { String(decoding: $0.last == carriageReturn ? $0.dropLast() : $0, as: UTF8.self) }
    guard let end = lines.dropLast().firstIndex(of: "") else { return nil }
    guard end == lines.count - 2, bytes.last == lineFeed, let first = lines.first else {
      throw .malformed
    }
    let (text, target) = try self.target(first)
    return TunnelRequest(target: target, address: try check(lines[1..<end], named: text))
  }

  /// What the request line asks for, as text too.
  private static func target(
    _ line: String
  ) throws(TunnelRefusal) -> (text: String, target: VantageTarget) {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 3, words[2] == "HTTP/1.1" else { throw .malformed }
    guard words[0] == "CONNECT" else { throw .noTunnel }
    guard let target = VantageTarget(words[1], port: nil) else { throw .malformed }
    return (words[1], target)
  }

  /// - Returns: the address that is asked for.
  private static func check(
    _ fields: ArraySlice<String>, named target: String
  ) throws(TunnelRefusal) -> IPAddress? {
    var hosts = 0
    var address: IPAddress?
    for field in fields {
      guard let colon = field.firstIndex(of: ":"), colon > field.startIndex,
        field[..<colon].utf8.allSatisfy({ $0 > 0x20 })
      else { throw .malformed }
      let name = field[..<colon].lowercased()
      guard !refused.contains(name) else { throw .malformed }
      let value = String(field[field.index(after: colon)...].drop { $0 == " " })
      if name == TunnelAddress.field {
        guard address == nil, case .address(let asked)? = try? HostName(value) else {
          throw .malformed
        }
        address = asked
      }
      guard name == "host" else { continue }
      hosts += 1
      guard value == target else { throw .malformed }
    }
    guard hosts == 1, fields.count <= mostFields else { throw .malformed }
    return address
  }

  /// Whether each line ends in CR LF, and has nothing but printable ASCII and tabs.
  private static func isText(_ bytes: [UInt8]) -> Bool {
    bytes.indices.allSatisfy { index in
      switch bytes[index] {
      case lineFeed: index > 0 && bytes[index - 1] == carriageReturn
      case carriageReturn: index + 1 == bytes.count || bytes[index + 1] == lineFeed
      case let byte: byte == 9 || (0x20..<0x7f).contains(byte)
      }
    }
  }

  private static let (lineFeed, carriageReturn): (UInt8, UInt8) = (10, 13)
}
