import Foundation

/// How much of a machine the requests of one transport take, where the platform leaves it to us.
package struct RequestSettings: Sendable {
  /// Requests to one host and port that have a socket or a stream at a time, and as many again whose
  /// bodies are streamed; the others wait, and cost about a kilobyte each.
  package var perOrigin = 64
  /// The same over all hosts.
  package var total = 512
  /// Threads that share the work, where it is more than a little.
  package var lanes: Int {
    max(1, min(4, ProcessInfo.processInfo.activeProcessorCount, perOrigin / 8))
  }
  /// Bytes of a streamed body that may wait for their reader.
  package var unread = 256 * 1024
  /// Bytes from which a body is handed over instead of copied.
  package var handedOver = 32 * 1024
  /// False for tests: as with a libcurl that was built without it.
  package var speaksHTTP2 = true
  /// A proxy's URL, for tests; `nil`: the environment's, such as `https_proxy`.
  package var proxy: String?

  package init() {}
}
