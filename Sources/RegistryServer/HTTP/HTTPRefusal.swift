import CMicroHTTPD
import CanonicalJSON
import Foundation

/// The answers that need no handler, finished once.
enum HTTPRefusal {
  static let methodNotAllowed = response(
    405, "this method is not served here", hint: "use GET or HEAD",
    headers: [("Allow", "GET, HEAD")])
  static let bodyRefused = response(413, "a request with a body is not served here")
  static let badPath = response(400, "the path is malformed")
  static let badHeader = response(400, "a header line is malformed or stands twice")

  /// The refusal that a request's header already earns, if any.
  static func of(method: UnsafePointer<CChar>, connection: OpaquePointer) -> HTTPResponse? {
    guard HeaderLines(of: connection).areUnambiguous else { return badHeader }
    guard strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 else { return methodNotAllowed }
    if let length = MHD_lookup_connection_value(connection, .HEADER_KIND, "Content-Length"),
      strcmp(length, "0") != 0
    {
      return bodyRefused
    }
    let coding = MHD_lookup_connection_value(connection, .HEADER_KIND, "Transfer-Encoding")
    return coding == nil ? nil : bodyRefused
  }

  /// An error as JSON, which no cache keeps.
  static func response(
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
enum JSONHeaders {
  static let uncached: [(name: String, value: String)] = [
    ("Content-Type", "application/json"), ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
  ]
}
