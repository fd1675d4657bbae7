/// What a handler is told of a request, once all of it is in.
///
/// HEAD arrives as GET: the server leaves the body out (RFC 9110 §9.3.2).
package struct HTTPRequest: Sendable {
  /// As sent: methods are case-sensitive (RFC 9110 §9.1).
  package var method: String
  /// The path, percent-decoded once, without the query.
  package var path: String
  /// The query's pairs in their order, percent-decoded once, `+` read as a space. A piece without
  /// `=` has an empty value.
  package var query: [(name: String, value: String)] = []
  /// The header lines.
  package var headers = HTTPHeaders()
  /// The body, whole and without its framing; empty where the path takes none.
  package var body: [UInt8] = []
  /// The caller's numeric address, without a port: the other side's, or where that is a trusted proxy, the
  /// one that it names.
  ///
  /// Hazard: behind a reverse proxy that nobody named it is the proxy's.
  package var peer: String
  /// Whether all clients may have this address: it is this machine's own, and no proxy is named.
  package var isShared = false

  /// The first value of a query name.
  package func query(_ name: String) -> String? { query.first { $0.name == name }?.value }
}
