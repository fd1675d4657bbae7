import CanonicalJSON

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
