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
  private let trustedBodies: BodyBudget
  private let isTrusted: HTTPTrust?
  private let isLoopback: Bool
  private let proxies: Locked<TrustedProxies>
  /// Whether each answer is its connection's last.
  let isStopping = Atomic(false)

  init(
    limits: HTTPLimits, isLoopback: Bool, proxies: TrustedProxies, routing: @escaping HTTPRouting,
    isTrusted: HTTPTrust?, observer: HTTPObserver?, handler: @escaping HTTPHandler
  ) {
    self.isLoopback = isLoopback
    self.isTrusted = isTrusted
    self.proxies = Locked(proxies)
    self.routing = routing
    self.handler = handler
    self.observer = observer
    self.limits = limits
    deadlines = ConnectionDeadlines(limits: limits)
    bodies = BodyBudget(limit: limits.bodies)
    trustedBodies = BodyBudget(limit: limits.trustedBodies)
  }

  /// Goes by these proxies from the next request on.
  func change(_ proxies: TrustedProxies) { self.proxies.withLock { $0 = proxies } }

  /// Bytes that all bodies take.
  var bodyBytes: Int { bodies.inUse + trustedBodies.inUse }

  /// A connection begins; one too many of its address is cut.
  func began(connection: HTTPConnection) {
    let isLimited = !isLoopback && !proxies.withLock { $0.contains(connection.peer) }
    guard deadlines.begin(connection, isLimited: isLimited) else {
      connection.isTooMany = true
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      return
    }
  }

  /// Who waits for an answer without a token.
  func stranger(on request: HTTPConnection) -> SuspendedConnections.Stranger {
    let (client, isShared) = caller(request)
    return SuspendedConnections.Stranger(
      bucket: ClientAddress.bucket(client), most: limits.waiting,
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
      let budget = isTrusted?(request.path, request.headers) == true ? trustedBodies : bodies
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
