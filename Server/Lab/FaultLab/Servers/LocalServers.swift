import Foundation
import SslPinningPlatform
import TLSTools

/// A small HTTP/1.1 server in this process, on a free port of 127.0.0.1, for tests and the demo.
///
/// It answers through a closure, remembers every request, and can be slow, endless or rude on
/// purpose (`HTTPResponse.Delivery`). It has no limits per client and is not for the open network.
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
    /// TLS handshakes that completed on this side. That requires the client's Finished, which a TLS 1.3
    /// client that refuses the certificate never sends.
    public var handshakesCompleted = 0
    public var handshakesResumed = 0
    public var handshakesFailed = 0
    /// Why the last failed handshake failed, in OpenSSL's words.
    public var lastHandshakeFailure: String?
    /// Bytes received after decryption: anything above zero was disclosed by a client.
    public var applicationBytesReceived = 0
  }

  private let core: HTTPServerCore
  var serverCore: HTTPServerCore { core }

  /// Starts a clear-text server.
  ///
  /// - Parameters:
  ///   - port: 0 takes a free one.
  ///   - connectionLimit: the most connections, each with a thread; more are closed at once.
  ///   - keepAliveMilliseconds: how long to wait on an idle connection or half a request.
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

  /// Every request so far, in the order of completion.
  public var requests: [HTTPRequest] { core.log.requests }

  public var counts: Counts { core.log.counts }

  /// Forgets requests and counts, between two parts of a test.
  public func clearLog() { core.clearLog() }

  /// Ends idle keep-alive connections now, the others after their current answer.
  public func closeConnections() { core.closeConnections() }

  /// Waits until no connection is in the middle of a handshake or request; false if `milliseconds` were
  /// not enough. A client sees a refused handshake before its server does: call this before counting.
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

/// A misbehaving TCP server on a free port of 127.0.0.1, which probes and clients must survive.
public final class LocalRawServer: Sendable {
  /// What it does with every connection, whatever the client sends.
  public enum Behaviour: Sendable, Hashable {
    /// Accepts and sends nothing, ever.
    case silent
    /// Accepts and closes.
    case hangUp
    /// Sends these bytes, then nothing.
    case sends([UInt8])
    /// Sends one of these bytes after each pause, over and over.
    case drips([UInt8], pauseMilliseconds: Int)
  }

  private let acceptor: ConnectionAcceptor
  private let accepted = Locked(0)

  public init(_ behaviour: Behaviour, port: UInt16 = 0) throws(SocketError) {
    acceptor = try ConnectionAcceptor(endpoint: .loopback(port), limit: 128)
    acceptor.start { [acceptor, accepted] (stream, _) throws(SocketError) in
      accepted.withLock { $0 += 1 }
      let patience = Deadline.after(milliseconds: 600_000)
      switch behaviour {
      case .hangUp: return
      case .silent: break
      case .sends(let bytes): try stream.write(bytes, until: patience)
      case .drips(let bytes, let pause):
        while !bytes.isEmpty {
          for byte in bytes {
            guard acceptor.stop.sleep(milliseconds: pause) else { return }
            try stream.write([byte], until: patience)
          }
        }
      }
      while try !stream.read(until: patience).isEmpty {}
    }
  }

  deinit { acceptor.shutDown() }

  /// Where it listens.
  public var port: UInt16 { acceptor.endpoint.port }

  /// How many connections it accepted.
  public var connections: Int { accepted.withLock { $0 } }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { acceptor.shutDown() }
}

/// A `LocalHTTPServer` over TLS, HTTP/1.1 only, whose identity can be changed while it runs.
public final class LocalTLSServer: LocalHTTPServer, @unchecked Sendable {
  private let options: TLSServerOptions
  private let current: Locked<ServerIdentity>

  /// Why a TLS server could not start.
  public enum Failure: Error, CustomStringConvertible {
    case socket(SocketError)
    case identity(CertificateError)

    public var description: String {
      switch self {
      case .socket(let error): error.description
      case .identity(let error): error.description
      }
    }
  }

  /// Starts the server; see `LocalHTTPServer.init` for the limits.
  public init(
    identity: ServerIdentity, options: TLSServerOptions = TLSServerOptions(), port: UInt16 = 0,
    connectionLimit: Int = 256, keepAliveMilliseconds: Int64 = 60_000, handler: @escaping Handler
  ) throws(Failure) {
    self.options = options
    current = Locked(identity)
    let context: TLSServerContext
    do throws(CertificateError) {
      context = try TLSServerContext(options: options) { _ in identity }
    } catch { throw .identity(error) }
    let core: HTTPServerCore
    do throws(SocketError) {
      core = try HTTPServerCore(
        endpoint: .loopback(port), tls: context, connectionLimit: connectionLimit,
        keepAliveMilliseconds: keepAliveMilliseconds, handler: handler)
    } catch { throw .socket(error) }
    super.init(core: core)
  }

  /// The identity that new full handshakes show.
  public var identity: ServerIdentity { current.withLock { $0 } }

  /// Shows another identity from the next handshake on.
  ///
  /// - Parameters:
  ///   - closingConnections: also ends kept-alive connections, idle ones now, the others after
  ///     their answer. Connections left open keep the identity that they began with.
  ///   - keepingSessions: keeps the ticket keys, so that clients resume sessions begun under the old
  ///     identity and never see the new one (a fleet with shared ticket keys). By default they are
  ///     dropped, as by a restarted server.
  public func replaceIdentity(
    _ identity: ServerIdentity, closingConnections: Bool = false, keepingSessions: Bool = false
  ) throws(CertificateError) {
    let context = try TLSServerContext(options: options) { _ in identity }
    serverCore.replaceContext(context, keepingSessions: keepingSessions)
    current.withLock { $0 = identity }
    if closingConnections { closeConnections() }
  }
}

extension LocalTLSServer.Failure: ExplainedError {}
