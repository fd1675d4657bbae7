import Foundation
import PinningPlatform
import Synchronization

/// An HTTP/1.1 server on libmicrohttpd.
///
/// - What a path takes is known before a body is read: see ``HTTPRouteRule``. What it does not take
///   is refused as soon as the header is in (404, 405, 413), and the connection is closed.
/// - An answer is finished, or comes later: then the connection is suspended, and no thread waits.
///   See ``HTTPAnswer``.
/// - Requests are read strictly (RFC 9112): what two parsers could read differently is refused and
///   the connection closed. See ``HeaderReader``, ``RequestFraming``, ``TargetPath``. A chunked
///   request is its connection's last, since libmicrohttpd reads chunks with more patience than
///   others, and nothing here can see how they came.
/// - Bounded: connections, connections per address, header bytes and lines, each body and all of
///   them, and by absolute deadlines the arrival of header and body, the wait for an answer and its
///   reading.
final class HTTPServer: Sendable {
  /// The address with the port that the system chose where 0 was asked for.
  let address: ListenAddress

  private let site: HTTPSite
  private let running: Locked<Running?>

  private struct Running: @unchecked Sendable {
    let daemon: HTTPDaemon
    /// Unchecked: a source may be cancelled from any thread.
    let reaper: any DispatchSourceTimer
  }

  /// Listens and answers from now on.
  ///
  /// - Throws: ``HTTPServerError``.
  init(
    listen: ListenAddress, limits: HTTPLimits = HTTPLimits(), routing: @escaping HTTPRouting,
    handler: @escaping HTTPHandler
  ) throws(HTTPServerError) {
    let (descriptor, address) = try ListeningSocket.open(listen)
    let site = HTTPSite(limits: limits, routing: routing, handler: handler)
    guard
      let daemon = HTTPDaemon(listening: descriptor, isLoopback: address.isLoopback, site: site)
    else {
      close(descriptor)
      throw .system(operation: "starting the HTTP server", reason: "out of threads or memory")
    }
    let reaper = DispatchSource.makeTimerSource()
    reaper.schedule(
      deadline: .now() + .milliseconds(250), repeating: .milliseconds(250),
      leeway: .milliseconds(50))
    reaper.setEventHandler {
      site.deadlines.cutOverdue()
      site.suspended.cancelAbandoned()
    }
    reaper.resume()
    self.address = address
    self.site = site
    running = Locked(Running(daemon: daemon, reaper: reaper))
  }

  deinit {
    guard let running = running.withLock({ $0 }) else { return }
    running.reaper.cancel()
    site.suspended.cancelAll()
    site.suspended.close()
    running.daemon.stop()
  }

  /// How many connections are open; 0 once it has stopped.
  var openConnections: Int { running.withLock { $0?.daemon.openConnections ?? 0 } }

  /// How many answers are waited for.
  var suspendedConnections: Int { site.suspended.count }

  /// Stops accepting, lets answers that are under way go out, and closes. Further calls do nothing.
  ///
  /// Who has connected is answered, also from the kernel's queue, and told that the connection ends
  /// with the answer. Work on later answers is cancelled, and what it gives is sent. Connections
  /// that ask nothing for half a second are hung up.
  func stop() async {
    guard let running = running.withLock({ $0.take() }) else { return }
    let daemon = running.daemon
    site.isStopping.store(true, ordering: .relaxed)
    let listening = daemon.quiesce()
    if listening >= 0 {
      Self.takeWaiting(listening, daemon)
      close(listening)
    }
    site.suspended.cancelAll()
    if await !isDrained(daemon, within: .milliseconds(500)) {
      site.deadlines.hangUp()
      _ = await isDrained(daemon, within: site.limits.drain)
    }
    site.suspended.close()
    running.reaper.cancel()
    await withCheckedContinuation { continuation in
      // Joins the server's threads, so not on a cooperative one.
      DispatchQueue.global().async {
        daemon.stop()
        continuation.resume()
      }
    }
  }

  private func isDrained(_ daemon: HTTPDaemon, within limit: Duration) async -> Bool {
    let step = Duration.milliseconds(10)
    var left = limit
    while daemon.openConnections > 0 {
      guard left > .zero else { return false }
      try? await Task.sleep(for: step)
      left -= step
    }
    return true
  }

  /// Hands over the connections that wait to be accepted: closing their socket would reset them.
  private static func takeWaiting(_ listening: Int32, _ daemon: HTTPDaemon) {
    while true {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let isTaken = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          let accepted = accept(listening, address, &length)
          guard accepted >= 0 else { return false }
          daemon.add(accepted, address, length)
          return true
        }
      }
      guard isTaken else { return }
    }
  }
}
