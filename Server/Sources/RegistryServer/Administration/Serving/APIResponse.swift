import CanonicalJSON
import HTTPServing

/// What a call is answered with.
struct APIResponse: Sendable {
  var status: UInt32 = 200
  let body: JSONObject
  var headers: [(name: String, value: String)] = []

  /// Nothing of it is kept by a cache, read as anything but JSON, shown in a frame, or told to another
  /// site.
  private static let security: [(name: String, value: String)] =
    JSONHeaders.uncached + [
      ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
      ("Referrer-Policy", "no-referrer"),
    ]

  var response: HTTPResponse {
    HTTPResponse(
      status: status, headers: Self.security + headers,
      body: JSONValue.object(body).canonicalBytes + [0x0a])
  }
}
