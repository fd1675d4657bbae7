import Foundation
import SslPinningPlatform
import SslPinningRules
import Synchronization

/// An HTTP/1.1 server on libmicrohttpd.
///
/// - What a path takes is known before a body is read: see ``HTTPRouteRule``. What it does not take
///   is refused as soon as the header is in (404, 405, 413), and the connection is closed.
/// - An answer is finished, or comes later: then the connection is suspended, and no thread waits.
///   See ``HTTPReply``.
/// - Requests are read strictly (RFC 9112): what two parsers could read differently is refused and
///   the connection closed. See ``RequestHead``, ``RequestFraming``, ``TargetPath``. A chunked
///   request is its connection's last, since libmicrohttpd reads chunks with more patience than
///   others, and nothing here can see how they came.
/// - Bounded: connections, connections per address, header bytes and lines, each body and all of
///   them, and by absolute deadlines the arrival of header and body, the wait for an answer and its
///   reading. Strangers wait for answers on a quarter of the connections at most. If seven eighths are open,
///   each answer is its connection's last and an address may have fewer. If all are open, idle and slow ones
///   of whoever has most give way to new ones, the sooner the more he has.
/// - With TLS 1.2 and later where it is given a certificate, which can be replaced while it runs.
package final class HTTPServer: Sendable {
  /// The address with the port that the system chose where 0 was asked for.
  package let address: ListenAddress

  private let site: Router
  private let running: Locked<Running?>
  private let intake: ConnectionIntake

  private struct Running: @unchecked Sendable {
    var daemon: HTTPDaemon
    /// Those before it, which serve their last connections.
    var retired: [HTTPDaemon] = []

    var daemons: [HTTPDaemon] { [daemon] + retired }
    /// Unchecked: a source may be cancelled from any thread.
    let reaper: any DispatchSourceTimer
  }

  /// Listens and answers from now on.
  ///
  /// - Parameter tls: the certificate to show; `nil` means clear text.
  /// - Throws: ``HTTPServerError``.
  package init(
    listen: ListenAddress, tls identity: ListenerIdentity? = nil,
    limits: HTTPLimits = HTTPLimits(), proxies: TrustedProxies = TrustedProxies(),
    routing: @escaping HTTPRouting, trusted: HTTPTrust? = nil, observer: HTTPObserver? = nil,
    handler: @escaping HTTPHandler
  ) throws(HTTPServerError) {
    let (descriptor, address) = try ListeningSocket.open(listen)
    let site = Router(
      limits: limits, isLoopback: address.isLoopback, proxies: proxies, routing: routing,
      trusted: trusted, observer: observer, handler: handler)
    guard let daemon = HTTPDaemon(identity: identity, site: site) else {
      close(descriptor)
      throw .system(operation: "starting the HTTP server", reason: "out of threads or memory")
    }
    let reaper = DispatchSource.makeTimerSource()
    let running = Locked<Running?>(Running(daemon: daemon, reaper: reaper))
    self.address = address
    self.site = site
    self.running = running
    intake = ConnectionIntake(
      listening: descriptor,
      hasRoom: {
        if Self.openConnections(running) < limits.connections { return true }
        site.deadlines.makeRoom(max(1, limits.connections / 8))
        return false
      },
      take: { socket, address, length in
        let peer = HTTPDaemon.peer(address)
        // Behind the lock: a daemon that has been stopped must not be given any.
        running.withLock { running in
          guard let running, site.admits(peer) else {
            close(socket)
            return
          }
          let isTaken = running.daemon.add(socket, address, length)
          if !isTaken { site.deadlines.giveUp(Caller(peer)) }
        }
      })
    reaper.schedule(deadline: .now() + Self.tick, repeating: Self.tick, leeway: .milliseconds(50))
    reaper.setEventHandler { [running] in
      site.deadlines.cutOverdue()
      site.suspended.cancelAbandoned()
      for daemon in Self.takeFinished(running, site) { daemon.stop() }
    }
    reaper.resume()
  }

  /// How often deadlines and clients that wait are looked at.
  private static let tick = DispatchTimeInterval.milliseconds(200)

  deinit {
    intake.close()
    guard let running = running.withLock({ $0.take() }) else { return }
    running.reaper.cancel()
    site.suspended.cancelAll()
    site.suspended.close()
    for daemon in running.daemons { daemon.stop() }
  }

  /// How many connections are open; 0 once it has stopped.
  var openConnections: Int { Self.openConnections(running) }

  /// Whether each answer is its connection's last, because so many have begun.
  var isCrowded: Bool { site.deadlines.isCrowded }

  private static func openConnections(_ running: Locked<Running?>) -> Int {
    running.withLock { ($0?.daemons ?? []).reduce(0) { $0 + $1.openConnections } }
  }

  /// How many answers are waited for.
  var suspendedConnections: Int { site.suspended.count }

  /// Bytes that request bodies under way take.
  package var bodyBytes: Int { site.bodyBytes }

  /// Shows another certificate from now on. No connection is dropped: those that are open end with
  /// their next answer, or when they have asked nothing for ``HTTPLimits/idle``.
  ///
  /// A second daemon takes new connections over. A server of clear text must not be given a certificate.
  ///
  /// - Throws: ``HTTPServerError``; the server then goes on as it was.
  package func reload(_ identity: ListenerIdentity) throws(HTTPServerError) {
    let taken: Bool? = running.withLock { running in
      guard var current = running else { return nil }
      guard
        let daemon = HTTPDaemon(identity: identity, site: site)
      else { return false }
      let before = current.daemon
      before.retire()
      current.retired.append(before)
      current.daemon = daemon
      running = current
      return true
    }
    guard taken != false else {
      throw .system(
        operation: "starting with the new certificate",
        reason: "out of threads or memory")
    }
  }

  /// Goes by these times from now on; all other limits stay as they are.
  package func change(times limits: HTTPLimits) { site.deadlines.change(limits) }

  /// Believes these proxies from now on.
  package func change(proxies: TrustedProxies) { site.change(proxies) }

  /// Stops accepting, lets answers that are under way go out, and closes. Further calls do nothing.
  ///
  /// Who has connected is answered, also from the kernel's queue, and told that the connection ends
  /// with the answer. Work on later answers is cancelled, and what it gives is sent. Connections
  /// that ask nothing for half a second are hung up.
  package func stop() async {
    site.isStopping.store(true, ordering: .relaxed)
    await intake.closed()
    guard let running = running.withLock({ $0.take() }) else { return }
    let daemons = running.daemons
    site.suspended.cancelAll()
    if await !Self.areDrained(daemons, within: .milliseconds(500)) {
      site.deadlines.hangUp()
      _ = await Self.areDrained(daemons, within: site.limits.drain)
    }
    site.suspended.close()
    running.reaper.cancel()
    await withCheckedContinuation { continuation in
      // Joins the server's threads, so not on a cooperative one.
      DispatchQueue.global().async {
        for daemon in daemons { daemon.stop() }
        continuation.resume()
      }
    }
  }

  private static func areDrained(_ daemons: [HTTPDaemon], within limit: Duration) async -> Bool {
    let step = Duration.milliseconds(10)
    var left = limit
    while daemons.contains(where: { $0.openConnections > 0 }) {
      guard left > .zero else { return false }
      try? await Task.sleep(for: step)
      left -= step
    }
    return true
  }

  private static func takeFinished(
    _ running: Locked<Running?>, _ site: Router
  ) -> [HTTPDaemon] {
    running.withLock { running in
      for daemon in running?.daemons ?? [] where daemon.forgetLost() {
        site.deadlines.forgetQueue()
      }
      let finished = (running?.retired ?? []).filter { $0.openConnections == 0 }
      running?.retired.removeAll { daemon in finished.contains { $0 === daemon } }
      return finished
    }
  }
}

/// Why the server does not listen.
public enum HTTPServerError: Error, Equatable, Sendable {
  /// Another program has the port.
  case addressInUse(ListenAddress)
  /// The port is reserved (below 1024, as a rule).
  case notPermitted(ListenAddress)
  /// This machine does not have the address.
  case noSuchAddress(ListenAddress)
  /// The listener's certificate or key cannot be used; `reason` says why and never what is in them.
  case certificate(reason: String)
  /// A system call failed; `reason` is the system's.
  case system(operation: String, reason: String)
}

extension HTTPServerError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .addressInUse(let address):
      "\(address) is in use; hint: is another server running? set server.listen to another port"
    case .notPermitted(let address):
      "listening on \(address) is not permitted; hint: set server.listen to a port above 1023"
    case .noSuchAddress(let address):
      "this machine does not have the address of \(address); hint: set server.listen"
    case .certificate(let reason):
      "the listener's certificate cannot be used: \(reason); "
        + "hint: two PEM files, the certificate with its chain and its own key"
    case .system(let operation, let reason): "\(operation) failed: \(reason)"
    }
  }
}

extension HTTPServerError: ExplainedError {}

/// Where the server listens: an IP address and a port, `127.0.0.1:7500` or `[::1]:7500`.
///
/// - Addresses only, no names: what a name resolves to can change under a server. `localhost` alone
///   is read as 127.0.0.1.
/// - An empty host, as in `:7500`, and `[::]` are every address of the machine, IPv4 and IPv6, as in
///   the reference server.
public struct ListenAddress: Hashable, Sendable {
  /// The address to bind in its canonical text, IPv6 without brackets.
  public let host: String
  /// The port; 0 lets the system choose one.
  public let port: UInt16

  /// The reference server's default: 127.0.0.1:7500.
  public static let standard = ListenAddress(host: "127.0.0.1", port: 7500)

  private init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// The same address with another port.
  func with(port: UInt16) -> ListenAddress { ListenAddress(host: host, port: port) }

  /// Reads `address:port`; `nil` where the text is none.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else { return nil }
    let host = String(text[..<colon])
    let digits = text[text.index(after: colon)...]
    guard (1...5).contains(digits.utf8.count),
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let port = UInt16(digits)
    else { return nil }
    guard !host.isEmpty else {
      self.init(host: "::", port: port)
      return
    }
    guard host.lowercased() != "localhost" else {
      self.init(host: "127.0.0.1", port: port)
      return
    }
    // Without brackets nobody can tell an IPv6 address from its port.
    guard !host.contains(":") || host.hasPrefix("["), let name = try? HostName(host),
      case .address(let address) = name
    else { return nil }
    self.init(host: address.description, port: port)
  }

  /// Whether the address is IPv6.
  public var isIPv6: Bool { host.utf8.contains(UInt8(ascii: ":")) }

  /// Whether it is every address of the machine, of both families.
  public var isEveryAddress: Bool { host == "::" }

  /// Whether one socket at each cannot be had at the same time: the port is the same, and one address is the
  /// other or has it in it.
  package func collides(with other: ListenAddress) -> Bool {
    func has(_ one: ListenAddress, _ other: ListenAddress) -> Bool {
      one.host == other.host || one.isEveryAddress || one.host == "0.0.0.0" && !other.isIPv6
    }
    return port != 0 && port == other.port && (has(self, other) || has(other, self))
  }

  /// Every address of the IPv4 family, with the same port.
  var everyIPv4Address: ListenAddress { ListenAddress(host: "0.0.0.0", port: port) }

  /// Whether only this machine can reach it.
  public var isLoopback: Bool { host == "::1" || host.hasPrefix("127.") }
}

extension ListenAddress: CustomStringConvertible {
  public var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
