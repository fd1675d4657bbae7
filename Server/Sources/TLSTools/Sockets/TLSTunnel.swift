import CSslPinningShims
import Foundation
import SslPinningPlatform

/// A connection under TLS for a library that knows TCP alone: the library gets one end of a pair of sockets, and a
/// thread carries bytes between the other end and the TLS session.
///
/// - The other side has proved itself before anybody gets a socket (``ProxyTrust``: TLS 1.2 or newer, a chain that ends
///   in the anchors, the name): no password goes to whoever stands between.
/// - Either side's end is passed on as an end. What is written is not acknowledged by that: only an answer is.
/// - A connection over which nothing moves for five minutes ends.
package enum TLSTunnel {
  private static let threads = WorkerThreads()

  /// Connects, one address of the host after the other.
  ///
  /// - Parameters:
  ///   - anchors: what the other side's chain has to end in.
  ///   - milliseconds: until the other side has proved itself; looking the name up is the system's, and may take longer.
  /// - Returns: a blocking socket, which the caller closes.
  package static func open(
    to host: String, port: UInt16, trusting anchors: ChainValidator, milliseconds: Int64
  ) throws(SocketError) -> Int32 {
    let trust: ProxyTrust
    do throws(CertificateError) {
      trust = try ProxyTrust(pins: [], anchors: { anchors }, identity: nil)
    } catch { throw .closed(reason: "\(error)") }
    let found: [Endpoint]
    switch NameResolver.askSystem(host, port) {
    case .success(let endpoints): found = endpoints
    case .failure(let failure): throw .closed(reason: failure.reason)
    }
    let (stop, deadline) = (try EventSignal(), Deadline.after(milliseconds: milliseconds))
    let (stream, endpoint) = try connect(to: found, stop, deadline)
    try stream.startTLS(trust) { trust.configure($0, host: host) }
    try stream.handshake(until: deadline)
    guard let session = stream.session else { throw .closed(reason: "there is no TLS session") }
    if let refusal = trust.refusal(of: session, host: host, port: port, at: endpoint) {
      throw .closed(reason: refusal)
    }
    return try carry(stream, stop)
  }

  private static func connect(
    to endpoints: [Endpoint], _ stop: EventSignal, _ deadline: Deadline
  ) throws(SocketError) -> (ByteStream, Endpoint) {
    var failure = SocketError.closed(reason: "the name has no address")
    for endpoint in endpoints {
      do throws(SocketError) {
        return (try ByteStream.dial(endpoint, stop: stop, until: deadline), endpoint)
      } catch { failure = error }
    }
    throw failure
  }

  /// Has a thread carry bytes until either side is done.
  private static func carry(
    _ stream: ByteStream, _ stop: EventSignal
  ) throws(SocketError) -> Int32 {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw .system(operation: "socketpair", code: errno)
    }
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    // From here on that thread's alone.
    nonisolated(unsafe) let pair = (ByteStream(Socket(owning: ends[1]), stop: stop), stream)
    threads.start("tls tunnel") {
      var relay = Relay(client: pair.0, server: pair.1, stop: stop)
      // Its end closes both, which is all that there is to tell.
      try? relay.run()
    }
    return ends[0]
  }
}
