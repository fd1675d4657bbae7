import CSslPinningOpenSSL
import TLSTools

/// One header field of a request or an answer.
public struct HTTPField: Sendable, Hashable {
  public var name: String
  public var value: String

  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request as a local server received it.
public struct HTTPRequest: Sendable {
  public var method: String
  /// As on the request line: usually path and query, for CONNECT `host:port`.
  public var target: String
  public var headers: [HTTPField]
  /// The body, without chunked coding.
  public var body: [UInt8]
  /// The number of its connection to this server, counted from 1.
  public var connection: Int
  /// Whether the connection resumed a TLS session, so that no certificate was shown.
  public var isResumed: Bool
  /// Nil over clear text.
  public var tlsVersion: TLSVersion?
  /// The name that the client asked for (SNI), if any.
  public var serverName: String?

  /// The target up to its query.
  public var path: String { String(target.prefix { $0 != "?" }) }

  /// The first value of a header; names are compared without regard to ASCII case.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// A local server's answer.
public struct HTTPResponse: Sendable {
  /// How the body is sent.
  public enum Delivery: Sendable, Hashable {
    /// At once, with Content-Length.
    case whole
    /// In chunks of a size, with a pause before each.
    case chunked(pieceBytes: Int, pauseMilliseconds: Int = 0)
    /// With Content-Length, but in pieces with a pause before each.
    case drip(pieceBytes: Int, pauseMilliseconds: Int)
    /// The body as a chunk, again and again until the client leaves.
    case endless(pauseMilliseconds: Int = 0)
    /// With the whole Content-Length; the connection is cut after this many bytes.
    case cutOff(afterBytes: Int)
    /// Only the body's bytes, without any HTTP; then the connection ends.
    case verbatim
    /// Like `verbatim`, but without a close_notify, as if an attacker had cut the connection.
    case torn
    /// Nothing; the connection ends.
    case hangUp
    /// So many changes of the sender's key (RFC 8446 section 4.6.3), which only TLS 1.3 has, and no answer.
    case keyUpdates(Int)
  }

  public var status: Int
  public var headers: [HTTPField]
  public var body: [UInt8]
  public var delivery: Delivery
  /// How long to wait before the first byte.
  public var delayMilliseconds: Int
  /// Ends the connection after this answer and says so.
  public var closesConnection: Bool

  public init(
    status: Int = 200, headers: [HTTPField] = [], body: [UInt8] = [],
    delivery: Delivery = .whole, delayMilliseconds: Int = 0, closesConnection: Bool = false
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.delivery = delivery
    self.delayMilliseconds = delayMilliseconds
    self.closesConnection = closesConnection
  }

  /// A text; `text/plain` by default.
  public static func text(
    _ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8"
  ) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [HTTPField("Content-Type", type)], body: Array(text.utf8))
  }

  /// A redirect to a URL.
  public static func redirect(to location: String, status: Int = 302) -> HTTPResponse {
    HTTPResponse(status: status, headers: [HTTPField("Location", location)])
  }
}

extension ByteStream {
  /// Changes the own key of TLS 1.3 so many times in a row: nobody needs more than a few in a lifetime.
  package func updateKeys(_ count: Int) throws(SocketError) {
    for _ in 0..<count {
      guard let session, SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 else {
        throw .closed(reason: OpenSSLErrors.drain())
      }
      try handshake(until: .after(milliseconds: 60_000))
    }
  }
}

/// Writes one answer as its `delivery` says.
struct ResponseWriter {
  let stream: ByteStream
  let stop: EventSignal

  /// - Returns: false if the connection must end after this answer.
  func send(
    _ response: HTTPResponse, to method: String, keepsAlive: Bool
  ) throws(SocketError) -> Bool {
    switch response.delivery {
    case .hangUp: return false
    case .keyUpdates(let count):
      try stream.updateKeys(count)
      return true
    case .verbatim:
      try write(response.body)
      return false
    case .torn:
      try write(response.body)
      stream.leaveQuietly()
      return false
    case .whole:
      try write(head(response, length: response.body.count, keepsAlive) + payload(response, method))
    case .drip(let size, let pause):
      try write(head(response, length: response.body.count, keepsAlive))
      try writePieces(payload(response, method), size: size, pause: pause, inChunks: false)
    case .chunked(let size, let pause):
      try write(head(response, length: nil, keepsAlive))
      guard method != "HEAD" else { break }
      try writePieces(response.body, size: size, pause: pause, inChunks: true)
      try write(Array("0\r\n\r\n".utf8))
    case .endless(let pause):
      try write(head(response, length: nil, keepsAlive))
      while !response.body.isEmpty {
        try writePieces(response.body, size: response.body.count, pause: pause, inChunks: true)
      }
    case .cutOff(let count):
      try write(
        head(response, length: response.body.count, keepsAlive)
          + response.body.prefix(max(0, count))
      )
      return false
    }
    return true
  }

  private func payload(_ response: HTTPResponse, _ method: String) -> [UInt8] {
    method == "HEAD" || Self.hasNoBody(response.status) ? [] : response.body
  }

  private func head(_ response: HTTPResponse, length: Int?, _ keepsAlive: Bool) -> [UInt8] {
    var text = "HTTP/1.1 \(response.status) \(Self.reason(response.status))\r\n"
    for field in response.headers { text += "\(field.name): \(field.value)\r\n" }
    if let length {
      if !Self.hasNoBody(response.status) { text += "Content-Length: \(length)\r\n" }
    } else {
      text += "Transfer-Encoding: chunked\r\n"
    }
    if !keepsAlive { text += "Connection: close\r\n" }
    return Array((text + "\r\n").utf8)
  }

  private func writePieces(
    _ bytes: [UInt8], size: Int, pause: Int, inChunks: Bool
  ) throws(SocketError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard stop.sleep(milliseconds: pause) else { throw .stopped }
      let piece = Array(rest.prefix(max(1, size)))
      try write(inChunks ? Self.chunk(piece) : piece)
      rest = rest.dropFirst(piece.count)
    }
  }

  /// A client that reads nothing for a minute counts as gone.
  private func write(_ bytes: [UInt8]) throws(SocketError) {
    try stream.write(bytes, until: .after(milliseconds: 60_000))
  }

  private static func chunk(_ piece: [UInt8]) -> [UInt8] {
    Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
  }

  /// RFC 9110 sections 15.2, 15.3.5 and 15.4.5.
  private static func hasNoBody(_ status: Int) -> Bool {
    (100..<200).contains(status) || status == 204 || status == 304
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    default: "Status"
    }
  }
}
