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
  /// The body, chunked coding undone.
  public var body: [UInt8]
  /// Which connection of this server it came on, counted from 1.
  public var connection: Int
  /// Whether that connection's TLS session was resumed, so that no certificate was shown.
  public var isResumed: Bool
  /// Nil over clear text.
  public var tlsVersion: TLSVersion?
  /// The name the client asked for (SNI), if any.
  public var serverName: String?

  /// The target up to its query.
  public var path: String { String(target.prefix { $0 != "?" }) }

  /// The first value of a header; names are compared without regard to ASCII case.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// What a local server answers.
public struct HTTPResponse: Sendable {
  /// How the body goes out.
  public enum Delivery: Sendable, Hashable {
    /// At once, with Content-Length.
    case whole
    /// In chunks of a size, with a pause before each.
    case chunked(pieceBytes: Int, pauseMilliseconds: Int = 0)
    /// With Content-Length, but in pieces with a pause before each.
    case drip(pieceBytes: Int, pauseMilliseconds: Int)
    /// The body as one chunk after the other until the client leaves.
    case endless(pauseMilliseconds: Int = 0)
    /// Content-Length tells the whole length; the connection is cut after this many bytes.
    case cutOff(afterBytes: Int)
    /// The body's bytes alone, instead of any HTTP; then the connection ends.
    case verbatim
    /// As `verbatim`, but without a close_notify: as if somebody on the way had cut the connection.
    case torn
    /// No byte; the connection ends.
    case hangUp
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

  /// A text; `text/plain` unless told otherwise.
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
