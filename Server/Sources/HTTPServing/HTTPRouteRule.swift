/// What a path takes, said before a body is read.
package enum HTTPRouteRule: Sendable, Hashable {
  /// The method is served, without a body: one that comes all the same is refused (413).
  case noBody
  /// The method is served, with a body of at most this many bytes (413 beyond).
  case body(limit: Int)
  /// The path is served under other methods: 405 (RFC 9110 §15.5.6).
  case methodNotAllowed(allow: [String])
  /// Nothing is served here: 404.
  case notFound
}

/// The rule for a method and a decoded path. Asked as soon as the header is in, on the server's
/// threads. HEAD is asked for as GET.
package typealias HTTPRouting = @Sendable (_ method: String, _ path: String) -> HTTPRouteRule
