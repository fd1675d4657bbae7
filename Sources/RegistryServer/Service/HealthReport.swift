import CanonicalJSON

/// A probe's answer: whether all is well, and what is not.
///
/// JSON (`{"reasons":[],"status":"ready"}`), or lines of text for whoever prefers `text/plain`: the status
/// first, then a reason each.
struct HealthReport: Sendable, Equatable {
  /// In a word or two.
  let status: String
  /// Whether the probe is answered with success.
  let isGood: Bool
  /// What is amiss; may hold something in a good report too.
  let reasons: [String]

  /// The status code: 200, or 503 (RFC 9110 §15.6.4).
  var code: UInt32 { isGood ? 200 : 503 }

  /// The body, and what its `Content-Type` says.
  ///
  /// - Parameter accept: the request's `Accept`, several lines joined by commas.
  func body(accept: String?) -> (contentType: String, bytes: [UInt8]) {
    if AcceptHeader.prefers("text/plain", to: "application/json", accept) {
      let lines = ([status] + reasons).map { $0 + "\n" }.joined()
      return ("text/plain; charset=utf-8", Array(lines.utf8))
    }
    let object = JSONObject([
      ("status", .string(status)), ("reasons", .array(reasons.map { .string($0) })),
    ])
    return ("application/json", JSONValue.object(object).canonicalBytes + [0x0a])
  }
}
