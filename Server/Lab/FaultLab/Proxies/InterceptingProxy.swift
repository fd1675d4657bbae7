import SslPinningPlatform
import TLSTools

/// A proxy between a client and its servers, honest or a man in the middle, for tests and the demo.
///
/// - It listens on 127.0.0.1 and dials only where its route leads; the default route leads to
///   loopback and nowhere else.
/// - As a man in the middle it shows certificates made on the fly by the attacker's authority, all
///   with one key, and asks nothing of the real server's certificate.
/// - `requests` and `plaintextBytes` are what the attacker read: both stay empty when pinning
///   works.
public final class InterceptingProxy: Sendable {
  /// Leads a host and port somewhere; nil answers 502.
  public typealias Route = @Sendable (_ host: String, _ port: UInt16) -> Endpoint?

  /// One CONNECT that a client sent.
  public struct Tunnel: Sendable, Hashable {
    public let host: String
    public let port: UInt16
    /// What the proxy answered: 200, or 502 without a route or a server.
    public let status: Int
  }

  /// Why a proxy could not start.
  public typealias Failure = LocalTLSServer.Failure

  private let core: ProxyCore

  private init(_ core: ProxyCore) { self.core = core }

  deinit { core.acceptor.shutDown() }

  /// A man in the middle on the wire: clients dial it in place of `upstream`, and it takes them for
  /// the name they ask for.
  ///
  /// - Parameter nameWithoutSNI: the name for clients that ask for none.
  public static func transparent(
    upstream: Endpoint, authority: CertificateAuthority, nameWithoutSNI: String = "127.0.0.1",
    port: UInt16 = 0
  ) throws(Failure) -> InterceptingProxy {
    try make(
      .transparent(upstream: upstream), authority, nameWithoutSNI: nameWithoutSNI, port: port,
      route: { _, _ in upstream })
  }

  /// An HTTP proxy for CONNECT that opens every tunnel and reads along.
  public static func intercepting(
    authority: CertificateAuthority, port: UInt16 = 0, route: @escaping Route = loopbackOnly
  ) throws(Failure) -> InterceptingProxy {
    try make(.connect, authority, nameWithoutSNI: "127.0.0.1", port: port, route: route)
  }

  /// An honest HTTP proxy for CONNECT: it carries bytes it cannot read.
  ///
  /// - Parameters:
  ///   - identity: what it shows to its clients, which then ask over TLS; `nil`: in clear text.
  ///   - clients: whose certificates it demands of them; `nil`: of nobody.
  ///   - options: how it speaks TLS.
  public static func tunnelling(
    port: UInt16 = 0, showing identity: ServerIdentity? = nil,
    admitting clients: ChainValidator? = nil, options: TLSServerOptions = TLSServerOptions(),
    route: @escaping Route = loopbackOnly
  ) throws(Failure) -> InterceptingProxy {
    let front: TLSServerContext?
    do throws(CertificateError) {
      front = try identity.map { (identity) throws(CertificateError) in
        let context = try TLSServerContext(options: options) { _ in identity }
        if let clients { context.admit(clients) }
        return context
      }
    } catch { throw .identity(error) }
    return try make(.connect, nil, nameWithoutSNI: "", port: port, front: front, route: route)
  }

  /// `localhost`, names below it, and loopback addresses lead to 127.0.0.1 or `::1`.
  public static let loopbackOnly: Route = { host, port in
    let name = host.lowercased()
    if name == "localhost" || name.hasSuffix(".localhost") { return .loopback(port) }
    if name == "::1" { return Endpoint(address: "::1", port: port) }
    guard let address = NumericAddress.canonicalIPv4(name), address.hasPrefix("127.") else {
      return nil
    }
    return Endpoint(address: address, port: port)
  }

  /// Where it listens.
  public var port: UInt16 { core.acceptor.endpoint.port }

  /// Every CONNECT so far.
  public var tunnels: [Tunnel] { core.log.withLock { $0.tunnels } }

  /// Every request that was read in clear, complete ones in order. A CONNECT itself is not among
  /// them.
  public var requests: [HTTPRequest] { core.log.withLock { $0.requests } }

  /// How many decrypted bytes of clients were read.
  public var plaintextBytes: Int { core.log.withLock { $0.plaintextBytes } }

  /// Handshakes with clients that completed, so that a client took the attacker for the server.
  public var handshakesCompleted: Int { core.log.withLock { $0.handshakesCompleted } }

  /// Handshakes with clients that did not.
  public var handshakesFailed: Int { core.log.withLock { $0.handshakesFailed } }

  /// What a client that asks for `name` is shown; nil for an honest proxy.
  public func identity(for name: String) throws(CertificateError) -> ServerIdentity? {
    try core.forger?.identity(for: name)
  }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { core.acceptor.shutDown() }

  private static func make(
    _ kind: ProxyCore.Kind, _ authority: CertificateAuthority?, nameWithoutSNI: String,
    port: UInt16, front: TLSServerContext? = nil, route: @escaping Route
  ) throws(Failure) -> InterceptingProxy {
    let forger: CertificateForger?
    do throws(CertificateError) {
      forger = try authority.map { (authority) throws(CertificateError) in
        try CertificateForger(authority: authority)
      }
    } catch { throw .identity(error) }
    do throws(SocketError) {
      return InterceptingProxy(
        try ProxyCore(
          kind: kind, forger: forger, nameWithoutSNI: nameWithoutSNI, port: port, front: front,
          route: route))
    } catch { throw .socket(error) }
  }
}
