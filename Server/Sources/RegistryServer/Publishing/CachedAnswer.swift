import HTTPServing

/// An answer that caches may keep, finished: with the body, and without for who has it.
struct CachedAnswer: Sendable {
  private let entityTag: String
  private let full: HTTPResponse
  private let unchanged: HTTPResponse

  /// - Parameters:
  ///   - entityTag: a strong tag of the body.
  ///   - lifetime: the value of `Cache-Control`.
  init(_ body: [UInt8], entityTag: String, lifetime: String) {
    self.entityTag = entityTag
    let cached: [(name: String, value: String)] = [
      ("ETag", entityTag), ("Cache-Control", lifetime),
    ]
    let typed: [(name: String, value: String)] = [
      ("Content-Type", "application/json"), ("X-Content-Type-Options", "nosniff"),
    ]
    let bytes = SharedBody(body)
    full = HTTPResponse(status: 200, headers: cached + typed, sharing: bytes)
    // With the body, which is not sent: the length told must be that of the document, or none
    // (RFC 9110 §8.6).
    unchanged = HTTPResponse(status: 304, headers: cached, sharing: bytes)
  }

  /// - Parameter ifNoneMatch: the value of that header; `nil` without.
  func response(ifNoneMatch: String?) -> HTTPResponse {
    guard let ifNoneMatch, EntityTag.matches(ifNoneMatch: ifNoneMatch, entityTag) else {
      return full
    }
    return unchanged
  }
}
