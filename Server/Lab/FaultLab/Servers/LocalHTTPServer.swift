import Foundation
import TLSTools

/// A small HTTP/1.1 server inside this process, on a free port of 127.0.0.1, for tests and the demo.
///
/// It answers through a closure, remembers every request, and can be slow, endless or rude on
/// purpose (`HTTPResponse.Delivery`). It is no server for the open network: no limits per client.
///
/// Unchecked: all state is behind locks; subclasses in this module add locked state only.
public class LocalHTTPServer: @unchecked Sendable {
  /// Answers a request, on the connection's own thread; it may block. Hazard: it must not call
  /// `stop()`, which waits for it.
  public typealias Handler = @Sendable (HTTPRequest) -> HTTPResponse

  /// What happened since the start.
  public struct Counts: Sendable, Equatable {
    /// Connections accepted.
    public var connections = 0
    /// Connections closed at once because too many were open.
    public var connectionsTurnedAway = 0
    /// TLS handshakes that completed on this side. In TLS 1.3 that includes the client's Finished,
    /// which a client that refuses the certificate never sends.
    public var handshakesCompleted = 0
    public var handshakesResumed = 0
    public var handshakesFailed = 0
    /// Why the last failed one failed, in OpenSSL's words.
    public var lastHandshakeFailure: String?
    /// Bytes received after decryption: anything above zero left a client's hands.
    public var applicationBytesReceived = 0
  }

  private let core: HTTPServerCore
  var serverCore: HTTPServerCore { core }

  /// Starts a clear-text server.
  ///
  /// - Parameters:
  ///   - port: 0 takes a free one.
  ///   - connectionLimit: threads at a time; further connections are closed at once.
  ///   - keepAliveMilliseconds: how long an idle connection or half a request is waited on.
  public convenience init(
    port: UInt16 = 0, connectionLimit: Int = 256, keepAliveMilliseconds: Int64 = 60_000,
    handler: @escaping Handler
  ) throws(SocketError) {
    try self.init(
      core: HTTPServerCore(
        endpoint: .loopback(port), tls: nil, connectionLimit: connectionLimit,
        keepAliveMilliseconds: keepAliveMilliseconds, handler: handler))
  }

  init(core: HTTPServerCore) { self.core = core }

  deinit { core.shutDown() }

  /// Where it listens.
  public var port: UInt16 { core.endpoint.port }

  /// Every request so far, in the order they were complete.
  public var requests: [HTTPRequest] { core.log.requests }

  public var counts: Counts { core.log.counts }

  /// Forgets requests and counts, between two parts of a test.
  public func clearLog() { core.clearLog() }

  /// Ends idle keep-alive connections now, the others after the answer they are in.
  public func closeConnections() { core.closeConnections() }

  /// Waits until no connection is in a handshake or in a request; false when `milliseconds` were
  /// not enough. A client sees a refused handshake before its server does: call this, then count.
  public func waitUntilIdle(milliseconds: Int64 = 10_000) async -> Bool {
    let deadline = Deadline.after(milliseconds: milliseconds)
    while !core.isIdle {
      if deadline.hasPassed { return false }
      try? await Task.sleep(nanoseconds: 2_000_000)
    }
    return true
  }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { core.shutDown() }
}
