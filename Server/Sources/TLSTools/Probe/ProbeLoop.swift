import CSslPinningOpenSSL
import CSslPinningShims
import Foundation
import SslPinningPlatform

/// One thread that runs probes, over epoll(7).
///
/// - A handshake costs about half a millisecond of CPU time, and waiting costs none: hundreds of silent
///   servers block no thread.
/// - At most `limit` connections are open, and a few more if a job has several. Further jobs queue while
///   their deadlines run.
/// - Every job completes exactly once, at the latest when its deadline passes or the loop stops.
final class ProbeLoop: Sendable {
  enum Order: Sendable {
    case begin(ProbeRequest)
    case cancel(UInt64)
    case addresses(job: UInt64, route: Int, Result<[Endpoint], NameResolver.Failure>)
    case stop
  }

  private let client: ProbeClient
  private let events: ProbeEvents
  private let orders = Locked<[Order]>([])
  private let resolver: NameResolver
  private let proxies: ProxyDirectory
  private let threads = WorkerThreads()

  init(
    client: ProbeClient, resolver: NameResolver, proxies: ProxyDirectory
  ) throws(SocketError) {
    self.client = client
    self.resolver = resolver
    self.proxies = proxies
    events = try ProbeEvents()
    guard threads.start("TLS probe", { [self] in run() }) else { throw WorkerThreads.exhausted }
  }

  /// Gives the thread an order. Callable from any thread.
  func send(_ order: Order) {
    let isFirst = orders.withLock { orders in
      orders.append(order)
      return orders.count == 1
    }
    // The sender of the first order wakes the thread.
    if isFirst { events.signal.raise() }
  }

  private func run() {
    let recall: ProbeScheduler.Recall = { [self] job, route in
      switch job.routes[route] {
      case .direct, .directInTurn: resolver.lastFound(job.host, port: job.port)
      case .tunnel(let host, let port, _): resolver.lastFound(host, port: port)
      }
    }
    let desk = ProbeScheduler(client: client, events: events, recall: recall) {
      [self] job, route, until in
      let answer: NameResolver.Answer = { [self] in
        send(.addresses(job: job.id, route: route, $0))
      }
      switch job.routes[route] {
      case .direct, .directInTurn:
        resolver.resolve(job.host, port: job.port, until: until, answer: answer)
      case .tunnel(let host, let port, _):
        proxies.find(host, port: port, until: until, answer: answer)
      }
    }
    while true {
      let taken = orders.withLock { orders in
        defer { orders = [] }
        return orders
      }
      for order in taken {
        switch order {
        case .begin(let job): desk.begin(job)
        case .cancel(let id): desk.cancel(id)
        case .addresses(let id, let route, let result): desk.dial(id, route, result)
        case .stop:
          desk.stop()
          return
        }
      }
      desk.admit()
      desk.tell()
      desk.load.endTurn(at: .now)
      let tokens = events.wait(milliseconds: desk.pause)
      desk.load.beginTurn(at: .now)
      for token in tokens { desk.advance(token) }
      desk.expire()
    }
  }
}

/// How much of its time a loop works, and does not wait.
struct LoopLoad {
  /// What it was at a moment.
  struct Reading {
    let time: ContinuousClock.Instant
    let worked: Duration
  }

  private var worked = Duration.zero
  private var turn: ContinuousClock.Instant?

  mutating func beginTurn(at now: ContinuousClock.Instant) { turn = now }

  mutating func endTurn(at now: ContinuousClock.Instant) {
    worked += turn.map { now - $0 } ?? .zero
    turn = nil
  }

  func reading(at now: ContinuousClock.Instant) -> Reading {
    Reading(time: now, worked: worked + (turn.map { now - $0 } ?? .zero))
  }

  /// Whether it worked for a quarter of the time since then: what timed out meanwhile may have waited for the loop. Servers can
  /// have it work, by what a handshake with them costs.
  func isHeavy(since then: Reading, at now: ContinuousClock.Instant) -> Bool {
    (reading(at: now).worked - then.worked) * 4 >= now - then.time
  }
}

/// The events of a loop: on the sockets of its connections, and a signal from other threads.
final class ProbeEvents: Sendable {
  let signal: EventSignal
  private let poll: Int32
  private static let signalToken = UInt64.max

  init() throws(SocketError) {
    signal = try EventSignal()
    poll = pp_tls_poll()
    guard poll >= 0 else { throw .system(operation: "epoll", code: errno) }
    // From here on `deinit` closes it, even if this initializer throws.
    guard pp_tls_poll_add(poll, signal.descriptor, Self.signalToken) == 1 else {
      throw .system(operation: "epoll", code: errno)
    }
  }

  deinit { close(poll) }

  /// Reports what happens to a socket by `token`, until it is closed.
  func watch(_ descriptor: Int32, token: UInt64) -> Bool {
    pp_tls_poll_add(poll, descriptor, token) == 1
  }

  /// Waits for events; returns the tokens of the sockets that have some.
  func wait(milliseconds: Int32) -> [UInt64] {
    let tokens = [UInt64](unsafeUninitializedCapacity: 128) { buffer, count in
      count = Int(pp_tls_poll_wait(poll, buffer.baseAddress, 128, milliseconds))
    }
    guard tokens.contains(Self.signalToken) else { return tokens }
    signal.lower()
    return tokens.filter { $0 != Self.signalToken }
  }
}

/// The client side of TLS for the probes of one thread.
///
/// - It accepts every handshake, also with bad certificates, old versions and weak keys, because a probe is to
///   report them; `ChainValidator` judges the chain afterwards. No application data is ever sent.
/// - It takes part in nothing that would keep its thread: no endless handshake (`endless_tls.h`), no key exchange over
///   more than 4096 bits of finite field, or 3072 with TLS 1.3.
/// - Certificates are read in a library context with few algorithms (`pp_tls_library`), which halves the
///   cost of a handshake (ADR 9). Chains are validated outside of it.
/// - A server that asks for a certificate gets the one that is configured, or none.
/// - For one thread at a time.
final class ProbeClient: TLSContext, Sendable {
  let context: OpenSSLObject
  private let identity: LoadedIdentity?

  /// - Parameters:
  ///   - kind: the kind of key that servers must show; `nil` for whatever they choose.
  ///   - identity: what this client shows to servers that ask.
  init(
    showing kind: CertificateKeyKind? = nil, as identity: ServerIdentity? = nil
  ) throws(CertificateError) {
    self.identity = if let identity { try LoadedIdentity(identity) } else { nil }
    OpenSSLErrors.clear()
    // Without that context OpenSSL uses its default one, which works the same but slower.
    guard let pointer = SSL_CTX_new_ex(pp_tls_library(), nil, TLS_client_method()) else {
      throw .openSSL(operation: "making a TLS context", reason: OpenSSLErrors.drain())
    }
    context = OpenSSLObject(pointer) { SSL_CTX_free($0) }
    SSL_CTX_set_security_level(pointer, 0)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLSVersion.tls10.rawValue), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    // One system call for all that the server sent, instead of two for each record.
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_READ_AHEAD, 1, nil)
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
    // Otherwise OpenSSL would also verify, against an empty store and for nothing.
    SSL_CTX_set_cert_verify_callback(pointer, letThrough, nil)
    SSL_CTX_set_cert_cb(
      pointer, noteDemand, self.identity.map { Unmanaged.passUnretained($0).toOpaque() })
    pp_tls_refuse_endless(pointer)
    SSL_CTX_set_security_callback(pointer, isAffordable)
    // TLS 1.3 does not ask that one. The server names the group, and pays nothing: ffdhe8192 costs this client 0.1 s.
    var groups = Array("X25519:P-256:X448:P-521:P-384:ffdhe2048:ffdhe3072".utf8CString)
    guard SSL_CTX_ctrl(pointer, SSL_CTRL_SET_GROUPS_LIST, 0, &groups) == 1 else {
      throw .openSSL(operation: "choosing groups", reason: OpenSSLErrors.drain())
    }
    // A server picks the key that can sign what the client takes (RFC 8446 section 4.2.3).
    guard let kind else { return }
    var names = Array(kind.signatureAlgorithms.utf8CString)
    guard SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SIGALGS_LIST, 0, &names) == 1 else {
      throw .openSSL(operation: "choosing signatures", reason: OpenSSLErrors.drain())
    }
  }
}

extension OpaquePointer {
  /// Whether the handshake of an SSL session was finished.
  var isHandshakeFinished: Bool { SSL_is_init_finished(self) == 1 }

  /// Whether a handshake up to TLS 1.2 failed only because this client had no certificate that the server takes, after
  /// the server had proved its own key.
  ///
  /// - The server asked for a certificate, and this client has sent its Finished: so the server's messages were
  ///   complete and its signatures valid.
  /// - The server signed its key exchange, including this client's random, with its certificate's key (RFC 5246
  ///   section 7.4.3). Plain RSA key exchange signs nothing: only the server's Finished would prove the key,
  ///   and that never comes.
  ///
  /// Hazard: this proves the key, and nothing of the chain above it. Neither the certificate message nor the demand is
  /// signed, so whoever stands between can put in another certificate for the same key, or cross-certificates above it.
  var provedItsKeyBeforeItRefused: Bool {
    var signature: Int32 = 0
    return SSL_version(self) <= TLSVersion.tls12.rawValue && SSL_get_ex_data(self, 0) != nil
      && SSL_get_state(self) == TLS_ST_CW_FINISHED
      && SSL_get_peer_signature_type_nid(self, &signature) == 1
  }
}

/// Called when a server asks for a certificate: notes the demand, and shows the one of the ``ProbeClient``, if it has one.
private func noteDemand(_ session: OpaquePointer?, _ identity: UnsafeMutableRawPointer?) -> Int32 {
  SSL_set_ex_data(session, 0, UnsafeMutableRawPointer(bitPattern: 1))
  guard let session, let identity else { return 1 }
  // The client of the session outlives it, and has the identity.
  _ = Unmanaged<LoadedIdentity>.fromOpaque(identity).takeUnretainedValue().use(on: session)
  return 1
}

/// What OpenSSL asks before it uses a key or an algorithm. All are taken, as on security level 0, but a finite-field
/// group of 10 000 bits costs this thread, and every other probe on it, a second for each connection.
/// OpenSSL knows one reason for a refusal here, and reports it as `dh key too small`.
private func isAffordable(
  _: OpaquePointer?, _: OpaquePointer?, _ operation: Int32, _ securityBits: Int32, _: Int32,
  _ key: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?
) -> Int32 {
  guard operation == SSL_SECOP_TMP_DH, let key else { return 1 }
  return securityBits >= 80 && EVP_PKEY_get_bits(OpaquePointer(key)) <= 4096 ? 1 : 0
}

private func letThrough(_: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 { 1 }

extension OpaquePointer {
  /// Sets SNI on an SSL session. (`SSL_set_tlsext_host_name` is a macro and not imported.)
  package func requestServerName(_ name: String) {
    guard NumericAddress.canonical(name) == nil else { return }
    var text = Array(name.utf8CString)
    SSL_ctrl(
      self, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &text)
  }
}
