/// One request and the status it got, for whoever counts.
package struct ServedRequest: Sendable {
  /// HEAD counts as GET; empty where the request was refused before it was read.
  let method: String
  /// The decoded path; `nil` where the request was refused before it was read.
  package let path: String?
  package let status: Int
  /// From the request's first line to its answer, without sending it.
  package let duration: Duration
}

/// Is told of every answer as it goes out, on the server's threads: it must not block. Not told of are
/// connections that end without an answer, and first lines that libmicrohttpd itself refuses.
package typealias HTTPObserver = @Sendable (ServedRequest) -> Void
