import CMicroHTTPD
import Foundation
import SslPinningPlatform
import Synchronization

/// What a server's connections have in common: the handler, the rules, the limits.
final class Router: Sendable {
  let routing: HTTPRouting
  let handler: HTTPHandler
  let observer: HTTPObserver?
  let limits: HTTPLimits
  let deadlines: ConnectionDeadlines
  let suspended = SuspendedConnections()
  let bodies: BodyBudget
  private let trustedBodies: TrustedBodies
  private let trusted: HTTPTrust?
  private let isLoopback: Bool
  private let proxies: Locked<TrustedProxies>
  /// Whether each answer is its connection's last.
  let isStopping = Atomic(false)

  init(
    limits: HTTPLimits, isLoopback: Bool, proxies: TrustedProxies, routing: @escaping HTTPRouting,
    trusted: HTTPTrust?, observer: HTTPObserver?, handler: @escaping HTTPHandler
  ) {
    self.isLoopback = isLoopback
    self.trusted = trusted
    self.proxies = Locked(proxies)
    self.routing = routing
    self.handler = handler
    self.observer = observer
    self.limits = limits
    deadlines = ConnectionDeadlines(limits: limits)
    bodies = BodyBudget(limit: limits.bodies)
    trustedBodies = TrustedBodies(limit: limits.trustedBodies)
  }

  /// Goes by these proxies from the next request on.
  func change(_ proxies: TrustedProxies) { self.proxies.withLock { $0 = proxies } }

  /// Bytes that all bodies take.
  var bodyBytes: Int { bodies.inUse + trustedBodies.inUse }

  /// Whether one more connection of an address may be handed over.
  func admits(_ peer: String) -> Bool {
    let isLimited = !isLoopback && !proxies.withLock { $0.contains(peer) }
    return !isLimited || deadlines.reserve(Caller(peer))
  }

  /// Who waits for an answer without a token.
  func stranger(on request: HTTPConnection) -> SuspendedConnections.Stranger {
    let (client, isShared) = caller(request)
    return SuspendedConnections.Stranger(
      caller: Caller(client), most: limits.waiting,
      mostOfOne: isShared ? limits.waiting : limits.waitingPerAddress)
  }

  /// Who sent a request, and whether everybody may have the address.
  private func caller(_ request: HTTPConnection) -> (client: String, isShared: Bool) {
    let proxies = proxies.withLock { $0 }
    guard !proxies.isEmpty else {
      return (request.peer, ClientAddress.isLoopback(request.peer))
    }
    return (
      proxies.client(request.peer, forwarded: request.headers[TrustedProxies.field]), false
    )
  }

  /// What the header of a request already earns, if anything. An answer at this point is the
  /// connection's last: no body is read.
  func refusal(of head: RequestHead, on request: HTTPConnection) -> HTTPResponse? {
    let body: RequestFraming.Body
    do throws(HeadFault) { body = try head.judge(request, limits) } catch {
      return HTTPRefusal.of(error)
    }
    // Where a chunked body ends is libmicrohttpd's reading alone, and more lenient than others'.
    request.isLast = body == .chunked
    switch routing(request.method, request.path) {
    case .methodNotAllowed(let allowed): return HTTPRefusal.methodNotAllowed(allowed)
    case .notFound:
      request.refusal = HTTPRefusal.notFound
      return body == .none ? nil : HTTPRefusal.notFound
    case .noBody: return body == .none ? nil : HTTPRefusal.bodyRefused
    case .body(let limit):
      guard body != .none else { return nil }
      let budget = trusted?(request.path, request.headers).map(trustedBodies.budget) ?? bodies
      if case .length(let length) = body {
        guard length <= UInt64(limit) else { return HTTPRefusal.bodyTooLarge }
        guard budget.has(Int(length)) else { return HTTPRefusal.overloaded }
      }
      request.body.begin(limit: limit, budget: budget)
      deadlines.receivingBody(request)
      return nil
    }
  }

  /// Takes a part of a body; false where the connection is to be closed.
  func receive(_ part: UnsafeRawBufferPointer, on request: HTTPConnection) -> Bool {
    request.body.append(part)
    return request.body.fault != .endless
  }

  /// The answer to a request whose last byte is in.
  func answer(to request: HTTPConnection) -> HTTPReply {
    switch request.body.fault {
    case .tooLarge, .endless: return .now(HTTPRefusal.bodyTooLarge)
    case .overloaded: return .now(HTTPRefusal.overloaded)
    case nil: break
    }
    if let refusal = request.refusal { return .now(refusal) }
    let (client, isShared) = caller(request)
    return handler(
      HTTPRequest(
        method: request.method, path: request.path, query: request.pairs,
        headers: request.headers, body: request.body.take(), peer: client, isShared: isShared))
  }

  /// A request begins.
  func began(_ request: HTTPConnection) {
    if observer != nil { request.began = .now }
  }

  /// Tells of an answer, once a request.
  func answered(_ request: HTTPConnection, _ status: UInt32) {
    guard let observer, let began = request.began else { return }
    request.began = nil
    observer(
      ServedRequest(
        method: request.method, path: request.path.isEmpty ? nil : request.path,
        status: Int(status), duration: began.duration(to: .now)))
  }
}

/// What a path takes, said before a body is read.
package enum HTTPRouteRule: Sendable, Hashable {
  /// The method is served, without a body: one that comes all the same is refused (413).
  case noBody
  /// The method is served, with a body of at most this many bytes (413 beyond).
  case body(limit: Int)
  /// The path is served under other methods: 405 (RFC 9110 §15.5.6).
  case methodNotAllowed(allow: [String])
  /// Nothing is served here: 404.
  case notFound
}

/// The rule for a method and a decoded path. Asked as soon as the header is in, on the server's
/// threads. HEAD is asked for as GET.
package typealias HTTPRouting = @Sendable (_ method: String, _ path: String) -> HTTPRouteRule

/// What one client may take of the server.
///
/// Times are absolute: each begins with its phase and no traffic moves it, so a steady drip gains
/// nothing.
public struct HTTPLimits: Sendable, Hashable {
  /// Connections in all; further ones wait to be accepted.
  public var connections = 1024
  /// Connections of one ``Caller``. Not applied to proxies that are trusted, nor while listening on loopback:
  /// there a reverse proxy stands in front, and every client has its address.
  public var connectionsPerAddress = 128
  /// From so many connections on each answer is its connection's last, and one address may have
  /// ``connectionsPerAddressInACrowd``: the last eighth is for callers with few connections.
  var crowd: Int { connections - connections / 8 }
  /// Connections of one address while there is a crowd.
  var connectionsPerAddressInACrowd: Int { max(1, connectionsPerAddress / 4) }
  /// Connections on which a stranger waits for an answer: 503 beyond. The others remain for whoever wants
  /// what is ready.
  public var waiting: Int { max(1, connections / 4) }
  /// The same of one client; not applied where all clients may have the same address.
  public var waitingPerAddress = 32
  /// How long a connection may wait for its next request to begin.
  public var idle = Duration.seconds(15)
  /// How long a request's header may take to arrive; on a new connection, counted from its
  /// beginning, a TLS handshake included.
  public var header = Duration.seconds(5)
  /// How long a request's body may take to arrive.
  public var body = Duration.seconds(5)
  /// How long an answer may take to be read.
  public var answer = Duration.seconds(5)
  /// How long an answer for later may take to be there.
  public var later = Duration.seconds(90)
  /// How long a clean stop waits for answers that are under way.
  public var drain = Duration.seconds(5)
  /// Bytes of a request's target (414 beyond).
  public var target = 4096
  /// Header lines of a request (431 beyond). Their bytes are bounded by the connection's memory,
  /// 16 KiB.
  public var headerLines = 64
  /// Bytes of all bodies that are under way (503 beyond).
  public var bodies = 32 << 20
  /// The same of whoever has shown a token, for each token: nothing that others send takes from it.
  public var trustedBodies = 8 << 20

  /// The defaults.
  public init() {}
}
