import CMicroHTTPD
import Foundation
import SslPinningPlatform
import Synchronization

/// One client's connection, and the request on it: there is one at a time.
///
/// Unchecked: all but atomics and ``later`` belongs to the one thread of libmicrohttpd that
/// serves the connection.
final class HTTPConnection: @unchecked Sendable {
  enum Phase {
    /// Nothing of a request is known.
    case idle
    /// The first line is in.
    case header
    /// The header is in and accepted.
    case body
    /// Somebody works on the answer.
    case waiting
    /// The answer goes out.
    case answering
  }

  let pointer: OpaquePointer
  let descriptor: Int32
  /// The other side's numeric address, and what counts as one caller with it.
  let peer: String
  let bucket: [UInt8]
  /// The thread that serves the connection.
  let thread = pthread_self()
  /// Nanoseconds of the monotonic clock.
  let deadline = Atomic<Int64>(.max)
  /// When what it does now began, and whether that is waiting for a request.
  let since = Atomic<Int64>(0)
  let isIdle = Atomic(true)
  /// Whether it was cut, and only its end is missing.
  let isCut = Atomic(false)
  /// Whether its address had all the connections that it may have.
  var isTooMany = false
  /// The answer that is waited for.
  var later: LaterAnswer? { waiting.withLock { $0 } }
  private let waiting = Locked<LaterAnswer?>(nil)

  var phase = Phase.idle
  /// When the request began, until it is told of.
  var began: ContinuousClock.Instant?
  /// Bytes of the target, up to a NUL.
  var targetLength = 0
  /// The query as sent, without its `?`.
  var query: [UInt8] = []
  /// As handlers are told it: HEAD is GET.
  var method = ""
  var path = ""
  var pairs: [(name: String, value: String)] = []
  var headers = HTTPHeaders()
  var body = RequestBody()
  /// What is answered in the handler's place.
  var refusal: HTTPResponse?
  /// Whether the answer is the connection's last.
  var isLast = false

  init(pointer: OpaquePointer, descriptor: Int32, peer: String) {
    self.pointer = pointer
    self.descriptor = descriptor
    self.peer = peer
    bucket = ClientAddress.bucket(peer)
  }

  func wait(for answer: LaterAnswer?) { waiting.withLock { $0 = answer } }

  /// Forgets the request.
  func reset() {
    phase = .idle
    began = nil
    method = ""
    path = ""
    query = []
    pairs = []
    body.end()
    refusal = nil
    isLast = false
  }
}
