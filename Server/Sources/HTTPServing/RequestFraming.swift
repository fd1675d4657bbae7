import CMicroHTTPD
import CanonicalJSON
import Foundation

/// Where a request's body ends (RFC 9112 §6.3), judged so that no proxy in front can see another
/// end.
///
/// - `Content-Length` stands once, in digits alone. `Transfer-Encoding` stands once, is exactly
///   `chunked`, and never beside a `Content-Length` nor in HTTP/1.0 (§6.1).
/// - A coding that is not understood is 501 where `chunked` comes last, and 400 otherwise: then
///   nothing says where the body ends.
struct RequestFraming {
  enum Body: Equatable {
    case none
    case length(UInt64)
    case chunked
  }

  private var lengths = 0
  private var length: UInt64?
  private var codings = 0
  private var isChunked = false
  private var isChunkedLast = false

  mutating func contentLength(_ value: UnsafeRawBufferPointer) {
    lengths += 1
    length = Self.digits(value)
  }

  /// - Parameter value: as it stands in the line, since libmicrohttpd compares it as a whole.
  mutating func transferEncoding(_ value: UnsafeRawBufferPointer) {
    codings += 1
    let lowered = String(decoding: value, as: UTF8.self).lowercased()
    isChunked = lowered == "chunked"
    let coding = lowered.split(separator: ",", omittingEmptySubsequences: false).last ?? ""
    isChunkedLast = coding.drop { $0 == " " || $0 == "\t" } == "chunked"
  }

  func body(isHTTP10: Bool) throws(HeadFault) -> Body {
    guard lengths <= 1, codings <= 1, lengths + codings <= 1 else { throw .malformed }
    if codings == 1 {
      guard !isHTTP10, isChunkedLast else { throw .malformed }
      guard isChunked else { throw .unknownCoding }
      return .chunked
    }
    guard lengths == 1 else { return .none }
    guard let length else { throw .malformed }
    return length == 0 ? .none : .length(length)
  }

  private static func digits(_ value: UnsafeRawBufferPointer) -> UInt64? {
    guard (1...19).contains(value.count) else { return nil }
    var number: UInt64 = 0
    for byte in value {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      number = number * 10 + UInt64(byte - UInt8(ascii: "0"))
    }
    return number
  }
}

/// Answers the requests that libmicrohttpd 0.9.75 answers with two heads.
///
/// It looks at `Content-Length` and the cookies of a whole head before any handler is asked. What it
/// refuses then, it refuses twice over on the same connection, one head behind the other. It does
/// tell its log first, on the connection's thread: here the refusal is sent in its place and the
/// socket is shut down, so that what it writes goes nowhere. Over TLS the connection just ends.
enum FaultyHeadGuard {
  static let logged: MHD_LogCallback = { context, _, _ in
    guard let context else { return }
    let daemon = Unmanaged<HTTPDaemon.Context>.fromOpaque(context).takeUnretainedValue()
    let current = pthread_self()
    let faulty = daemon.site.deadlines.withOpen { connections in
      // A head is complete and its handler was not asked: there is one such connection at most.
      connections.first {
        pthread_equal($0.thread, current) != 0 && $0.phase == .header
          && pp_mhd_header_size($0.pointer) > 0
      }
    }
    // It is this thread's, so nobody closes it meanwhile.
    guard let faulty else { return }
    faulty.phase = .answering
    daemon.site.answered(faulty, HTTPRefusal.badHeader.status)
    if !daemon.isTLS {
      _ = answer.withUnsafeBytes {
        send(
          faulty.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
    }
    shutdown(faulty.descriptor, Int32(SHUT_RDWR))
  }

  private static let answer: [UInt8] = {
    let refusal = HTTPRefusal.badHeader
    var lines = ["HTTP/1.1 400 Bad Request", "Connection: close"]
    lines += refusal.headers.map { "\($0.name): \($0.value)" }
    lines += ["Content-Length: \(refusal.body.count)", "", ""]
    return Array(lines.joined(separator: "\r\n").utf8) + refusal.body
  }()
}

/// The answers that need no handler, finished once.
package enum HTTPRefusal {
  static let bodyRefused = response(413, "a request with a body is not served here")
  static let bodyTooLarge = response(413, "the body is too large")
  static let badPath = response(400, "the path is malformed")
  static let badQuery = response(400, "the query is malformed")
  static let badHeader = response(
    400, "the request line or a header line is malformed, ambiguous or stands twice")
  static let badTrailer = response(400, "trailers are not served here")
  static let targetTooLong = response(414, "the path and query are too long")
  static let tooManyLines = response(431, "the request has too many header lines")
  static let unknownExpectation = response(
    417, "this expectation cannot be met", hint: "only 100-continue is known")
  static let unknownCoding = response(501, "this transfer coding is not served here")
  static let unsupportedVersion = response(
    505, "this version of HTTP is not served here", hint: "use 1.1")
  static let notFound = response(404, "no such path")
  static let overloaded = response(
    503, "too many request bodies are under way", headers: [("Retry-After", "1")])
  /// Beyond what strangers may wait on.
  static let crowded = response(
    503, "too many callers wait for an answer", headers: [("Retry-After", "1")])
  /// In the place of an answer that did not come in time.
  static let unavailable = response(
    503, "the answer did not come in time",
    headers: [("Retry-After", "1"), ("Connection", "close")])

  private static let readOnly = methodNotAllowed(["GET", "HEAD"], hint: "use GET or HEAD")

  static func methodNotAllowed(_ allowed: [String]) -> HTTPResponse {
    allowed == ["GET", "HEAD"] ? readOnly : methodNotAllowed(allowed, hint: nil)
  }

  private static func methodNotAllowed(_ allowed: [String], hint: String?) -> HTTPResponse {
    response(
      405, "this method is not served here", hint: hint,
      headers: [("Allow", allowed.joined(separator: ", "))])
  }

  /// The answer to a head that is not judged any further.
  static func of(_ fault: HeadFault) -> HTTPResponse {
    switch fault {
    case .malformed: badHeader
    case .malformedPath: badPath
    case .malformedQuery: badQuery
    case .unsupportedVersion: unsupportedVersion
    case .unknownCoding: unknownCoding
    case .unknownExpectation: unknownExpectation
    case .targetTooLong: targetTooLong
    case .tooManyLines: tooManyLines
    }
  }

  /// An error as JSON, which no cache keeps.
  package static func response(
    _ status: UInt32, _ message: String, hint: String? = nil,
    headers: [(name: String, value: String)] = []
  ) -> HTTPResponse {
    var members: [(String, JSONValue)] = [("error", .string(message))]
    if let hint { members.append(("hint", .string(hint))) }
    return HTTPResponse(
      status: status, headers: JSONHeaders.uncached + headers,
      body: JSONValue.object(JSONObject(members)).canonicalBytes + [0x0a])
  }
}

/// The header lines of JSON answers.
package enum JSONHeaders {
  package static let uncached: [(name: String, value: String)] = [
    ("Content-Type", "application/json"), ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
  ]
}
