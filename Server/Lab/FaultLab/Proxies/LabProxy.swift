import SslPinningPlatform
import SslPinningRules
import TLSTools

/// An HTTP proxy that steps between the apps of a device on the desk and their servers, and tells of each connection
/// whether the app let it in.
///
/// - Hazard: it reads what passes, and checks no server. Only for devices of one's own: whoever uses it and trusts
///   its CA has no protection at all. It refuses no destination, so it must be reachable by nobody else.
/// - An app let it in if it sent a byte after the handshake. One that ends the connection before that refused it,
///   whether it said so by an alert or just left.
/// - Bounded: connections, the head of a request, every wait, and the certificates that it remembers.
public final class LabProxy: Sendable {
  /// What it does to the connections that it attacks.
  public enum Mode: String, Sendable, CaseIterable {
    /// A certificate of its CA for the name that is asked for.
    case intercept
    /// The same, and it ended yesterday.
    case expired
    /// A certificate of its CA for another name.
    case wrongName = "wrong-name"
    /// A self-signed certificate for the name.
    case selfSigned = "self-signed"
    /// Ends the connection as soon as the client has said hello.
    case interrupt
    /// Carries bytes that it cannot read.
    case pass
  }

  /// What came of a connection.
  public enum Outcome: Sendable, Hashable {
    /// The client sent this after the handshake: a method, or `HTTP/2`; `nil` if it was neither.
    case letIn(sent: String?)
    /// The client sent a request in clear text.
    case clearText(method: String)
    /// The client ended the handshake, by this alert or without one.
    case refused(alert: String?)
    /// The client finished the handshake, and left without having sent anything.
    case closed(alert: String?)
    /// It was carried unread.
    case passed
    /// It was cut off, as asked.
    case interrupted
    /// Nothing is known of the client: the reason lies elsewhere.
    case unclear(reason: String)
  }

  /// A connection that a client asked for.
  public struct Connection: Sendable, Hashable {
    /// Counted from 1.
    public let number: Int
    /// As the client named it to the proxy.
    public let host: String
    public let port: UInt16
    /// The name in the client's hello (SNI), if it came that far.
    public let serverName: String?
    public let outcome: Outcome

    public init(
      number: Int, host: String, port: UInt16, serverName: String?, outcome: Outcome
    ) {
      self.number = number
      self.host = host
      self.port = port
      self.serverName = serverName
      self.outcome = outcome
    }
  }

  /// Why a proxy could not start.
  public typealias Failure = LocalTLSServer.Failure

  private let core: LabProxyCore

  /// Listens from now on.
  ///
  /// - Parameters:
  ///   - endpoint: where; the caller sees to it that strangers cannot reach it.
  ///   - authority: issues the certificates; clients get its root at `/ca.cer`.
  ///   - patterns: the hosts that are attacked, the others are passed; empty: all.
  ///   - report: told of each connection, on its thread, as soon as its outcome is known.
  public init(
    listen endpoint: Endpoint, authority: CertificateAuthority, mode: Mode,
    attacking patterns: [HostPattern] = [], report: @escaping @Sendable (Connection) -> Void
  ) throws(Failure) {
    let forger: LabForger
    do throws(CertificateError) { forger = try LabForger(authority, mode) } catch {
      throw .identity(error)
    }
    do throws(SocketError) {
      core = try LabProxyCore(endpoint, forger, mode, patterns, report)
    } catch { throw .socket(error) }
  }

  deinit { core.acceptor.shutDown() }

  /// Where it listens.
  public var endpoint: Endpoint { core.acceptor.endpoint }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { core.acceptor.shutDown() }
}

/// Makes the certificates that a ``LabProxy`` shows, all with one key.
final class LabForger: Sendable {
  /// So many names are remembered; certificates for others are made anew each time.
  private static let limit = 1000

  let authority: CertificateAuthority
  let upstream: UnverifiedTLSClient
  private let mode: LabProxy.Mode
  private let key: PrivateKey
  private let made = Locked<[String: ServerIdentity]>([:])

  init(_ authority: CertificateAuthority, _ mode: LabProxy.Mode) throws(CertificateError) {
    (self.authority, self.mode) = (authority, mode)
    key = try .generate(.p256)
    upstream = try UnverifiedTLSClient()
  }

  func identity(for name: String) throws(CertificateError) -> ServerIdentity {
    let name = name.lowercased()
    if let known = made.withLock({ $0[name] }) { return known }
    let identity = try make(name)
    made.withLock { if $0.count < Self.limit { $0[name] = identity } }
    return identity
  }

  private func make(_ name: String) throws(CertificateError) -> ServerIdentity {
    switch mode {
    case .selfSigned: return try .selfSigned(names: [name], key: key)
    case .wrongName: return try authority.issue(names: ["wrong-name.invalid"], key: key)
    case .expired:
      let ended = Validity.daysFromNow(-1)
      return try authority.issue(
        names: [name], key: key,
        validity: Validity(notBefore: ended.notAfter - 30 * 86_400, notAfter: ended.notAfter))
    case .intercept, .interrupt, .pass:
      return try authority.issue(names: [name], key: key, validity: .daysFromNow(7))
    }
  }
}
