import SslPinningPlatform
import TLSTools

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

  /// What new full handshakes are shown.
  public var identity: ServerIdentity { current.withLock { $0 } }

  /// Shows another identity from the next handshake on.
  ///
  /// - Parameters:
  ///   - closingConnections: also ends kept-alive connections, idle ones now, the others after
  ///     their answer. Left open, they go on under the identity they began with.
  ///   - keepingSessions: keeps the ticket keys, so that clients resume sessions they began under
  ///     the old identity and never see the new one (a fleet with shared ticket keys). The default
  ///     drops them, as a server that is restarted does.
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
