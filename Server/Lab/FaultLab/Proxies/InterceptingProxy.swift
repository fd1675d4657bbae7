import CSslPinningOpenSSL
import SslPinningPlatform
import TLSTools

/// A proxy between a client and its servers, honest or a man in the middle, for tests and the demo.
///
/// - It listens on 127.0.0.1 and connects only where its route says; the default route allows loopback
///   only.
/// - As a man in the middle it shows certificates made on the fly by the attacker's authority, all
///   with one key, and accepts any certificate of the real server.
/// - `requests` and `plaintextBytes` are what the attacker read: both stay empty if pinning works.
public final class InterceptingProxy: Sendable {
  /// Where a host and port lead; nil answers 502.
  public typealias Route = @Sendable (_ host: String, _ port: UInt16) -> Endpoint?

  /// One CONNECT that a client sent.
  public struct Tunnel: Sendable, Hashable {
    public let host: String
    public let port: UInt16
    /// The proxy's answer: 200, or 502 without a route or a server.
    public let status: Int
  }

  /// Why a proxy could not start.
  public typealias Failure = LocalTLSServer.Failure

  private let core: ProxyCore

  private init(_ core: ProxyCore) { self.core = core }

  deinit { core.acceptor.shutDown() }

  /// A man in the middle on the wire: clients connect to it instead of `upstream`, and it pretends to be
  /// the server whose name they ask for.
  ///
  /// - Parameter nameWithoutSNI: the name for clients that send none.
  public static func transparent(
    upstream: Endpoint, authority: CertificateAuthority, nameWithoutSNI: String = "127.0.0.1",
    port: UInt16 = 0
  ) throws(Failure) -> InterceptingProxy {
    try make(
      .transparent(upstream: upstream), authority, nameWithoutSNI: nameWithoutSNI, port: port,
      route: { _, _ in upstream })
  }

  /// An HTTP proxy for CONNECT that decrypts and reads every tunnel.
  public static func intercepting(
    authority: CertificateAuthority, port: UInt16 = 0, route: @escaping Route = loopbackOnly
  ) throws(Failure) -> InterceptingProxy {
    try make(.connect, authority, nameWithoutSNI: "127.0.0.1", port: port, route: route)
  }

  /// An honest HTTP proxy for CONNECT: it carries bytes that it cannot read.
  ///
  /// - Parameters:
  ///   - identity: its TLS identity towards clients; `nil`: clear text.
  ///   - clients: validates client certificates, which are then required; `nil`: none are.
  ///   - options: its TLS settings.
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

  /// Every complete request that was read in clear, in order, without the CONNECT requests.
  public var requests: [HTTPRequest] { core.log.withLock { $0.requests } }

  /// How many decrypted bytes were read from clients.
  public var plaintextBytes: Int { core.log.withLock { $0.plaintextBytes } }

  /// Completed handshakes with clients: each took the attacker for the server.
  public var handshakesCompleted: Int { core.log.withLock { $0.handshakesCompleted } }

  /// Failed handshakes with clients.
  public var handshakesFailed: Int { core.log.withLock { $0.handshakesFailed } }

  /// The identity shown to a client that asks for `name`; nil for an honest proxy.
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

/// Makes a server certificate for any name, once for each, all with one key.
final class CertificateForger: Sendable {
  private let authority: CertificateAuthority
  private let key: PrivateKey
  private let made = Locked<[String: ServerIdentity]>([:])
  let upstream: UnverifiedTLSClient

  init(authority: CertificateAuthority) throws(CertificateError) {
    self.authority = authority
    key = try .generate(.p256)
    upstream = try UnverifiedTLSClient()
  }

  func identity(for name: String) throws(CertificateError) -> ServerIdentity {
    let name = name.lowercased()
    if let known = made.withLock({ $0[name] }) { return known }
    let identity = try authority.issue(names: [name], key: key)
    return made.withLock { made in
      // Two threads may have made one each; both then use the first.
      let kept = made[name] ?? identity
      made[name] = kept
      return kept
    }
  }

  /// The server side of TLS; the client may ask for a name by SNI.
  func context(fallbackName: String) throws(CertificateError) -> TLSServerContext {
    try TLSServerContext(options: TLSServerOptions(sessionTickets: false)) { [self] serverName in
      try? identity(for: serverName ?? fallbackName)
    }
  }
}

/// The client side of TLS for a man in the middle: it accepts any certificate. Hazard: it protects
/// nothing, and is only for attacks in tests and the demo.
final class UnverifiedTLSClient: TLSContext, Sendable {
  let context: OpenSSLObject

  init() throws(CertificateError) {
    OpenSSLErrors.clear()
    guard let pointer = SSL_CTX_new(TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_MODE,
      Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
    let protocols = [8] + Array("http/1.1".utf8)
    SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count))
  }

  /// Runs the handshake, asking for `serverName` unless that is an address (RFC 6066 section 3).
  ///
  /// - Parameter protocols: for ALPN, each with its length in front; empty: HTTP/1.1.
  func secure(
    _ stream: ByteStream, serverName: String, offering protocols: [UInt8] = [],
    until deadline: Deadline
  ) throws(SocketError) {
    try stream.startTLS(self) { session in
      SSL_set_connect_state(session)
      session.requestServerName(serverName)
      if !protocols.isEmpty {
        SSL_set_alpn_protos(session, protocols, UInt32(clamping: protocols.count))
      }
    }
    try stream.handshake(until: deadline)
  }
}
