import Foundation
import HTTPServing
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A vantage point: opens tunnels to enrolled endpoints for registry servers, and does nothing else.
///
/// - Nothing is read of a client before it has proved its key (``ProxyAdmission``), and of a request nothing but its
///   head (``TunnelRequest``).
/// - Names are looked up here, once for each tunnel, and what is dialled is an address of that answer which
///   ``VantageRules`` permits: a name that leads elsewhere meanwhile changes nothing.
/// - A tunnel has room for a handshake: it ends after a minute, and after a quarter of a megabyte from either side. So
///   whoever stole a client's key can speak to enrolled endpoints, and to nobody else.
/// - Every wait has a deadline, connections are counted (``VantageCrowd``), and each endpoint is dialled so often at most for
///   one client. What one client uses up is not another's.
/// - It sees of a handshake what any router on the way sees, and cannot change it unnoticed.
package final class VantageServer: Sendable {
  /// Bounds; times are milliseconds.
  package struct Limits: Sendable {
    /// Tunnels at once of one client alone. There are twice as many, of which each client leaves the others some.
    package var tunnels = 512
    /// Connections at once that have proved nothing yet: a registry begins 256 probes at once, each with four questions at most.
    package var strangers = 1024
    /// For a handshake with a client, and again for its request.
    package var patience: Int64 = 5000
    /// For looking a name up and dialling: less than a registry waits, or its silence is taken for this point's.
    package var dialling: Int64 = 3000
    /// For a whole tunnel.
    package var life: Int64 = 60_000
    /// In each direction of a tunnel.
    package var bytes = 262_144
    /// Tunnels of one client to one endpoint in a row, and then one each ``dialInterval``: what a dozen documents of one host
    /// ask for, if all of them probe a fleet each two seconds. Who is refused is silent, and silence keeps no key away.
    package var dials = 240
    package var dialInterval: Int64 = 50

    package init() {}
  }

  /// Where it listens.
  package let address: ListenAddress
  private let listener: Socket
  private let admission: ProxyAdmission
  private let rules: Locked<VantageRules>
  private let limits: Limits
  private let resolver: NameResolver
  private let order: @Sendable ([Endpoint]) -> [Endpoint]
  private let log: ServerLog
  private let stopSignal: EventSignal
  private let threads: WorkerThreads
  private let crowd: Locked<VantageCrowd>
  private let dials: Locked<RateLimiter>
  private let told = Locked(RateLimiter(burst: 20, interval: 3000))
  private let strangers = Locked(StrangerLines())

  /// Listens from now on, until ``stop()``.
  ///
  /// - Parameters:
  ///   - text: where to listen, such as `:8443`.
  ///   - identity: what clients know it by: they have the pin of its key.
  ///   - clients: the pins of the registry servers' keys.
  ///   - resolver: what names lead to.
  ///   - order: in which order the addresses of a name are dialled, if none of them is asked for. At random, so that this
  ///     point sees each server of a fleet in time: one that saw the same each time would deny the key of every other.
  ///   - threads: of connections, and one more.
  package init(
    on text: String, showing identity: ServerIdentity, to clients: Set<SPKIPin>,
    rules: VantageRules, limits: Limits = Limits(), resolver: NameResolver = NameResolver(),
    order: @escaping @Sendable ([Endpoint]) -> [Endpoint] = { $0.shuffled() },
    threads: WorkerThreads = WorkerThreads(), log: ServerLog
  ) throws(VantageError) {
    (self.rules, self.limits) = (Locked(rules), limits)
    (self.resolver, self.order, self.threads, self.log) = (resolver, order, threads, log)
    crowd = Locked(VantageCrowd(tunnels: limits.tunnels, strangers: limits.strangers))
    dials = Locked(RateLimiter(burst: limits.dials, interval: limits.dialInterval))
    do throws(CertificateError) {
      admission = try ProxyAdmission(showing: identity, to: clients)
    } catch { throw .identity(reason: "\(error)") }
    do throws(SocketError) { stopSignal = try EventSignal() } catch {
      throw .listening(reason: "\(error)")
    }
    guard let listen = ListenAddress(text) else {
      throw .invalid(
        "\"\(text)\" is no address with a port; hint: :8443, 192.0.2.7:8443 or [2001:db8::7]:8443")
    }
    do throws(HTTPServerError) {
      let (descriptor, address) = try ListeningSocket.open(listen)
      (listener, self.address) = (Socket(owning: descriptor), address)
    } catch { throw .listening(reason: Self.reason(error)) }
    guard threads.start("vantage", { [self] in accept() }) else {
      throw .listening(reason: "\(WorkerThreads.exhausted)")
    }
  }

  /// The port at which it listens.
  package var port: UInt16 { address.port }

  /// What may be asked for from now on.
  package func change(_ rules: VantageRules) { self.rules.withLock { $0 = rules } }

  /// Stops accepting, cuts what is open, and waits for it.
  package func stop() {
    stopSignal.raise()
    crowd.withLock { $0.endAll() }
    threads.wait(seconds: 10)
    listener.close()
  }

  private static func reason(_ error: HTTPServerError) -> String {
    "\(error)".replacing("set server.listen", with: "set --listen")
  }

  // MARK: - Connections

  private func accept() {
    var number = 0
    while waitForConnection() {
      do throws(SocketError) {
        guard let socket = try listener.accept() else { continue }
        number += 1
        receive(socket, number)
      } catch {
        // Out of descriptors: the connection still waits, so try again a little later.
        if !stopSignal.sleep(milliseconds: 20) { return }
      }
    }
  }

  private func waitForConnection() -> Bool {
    var watched = [
      pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    _ = poll(&watched, 2, -1)
    return !stopSignal.isRaised
  }

  private func receive(_ socket: Socket, _ number: Int) {
    let client = socket.peer?.address ?? ""
    let isIn = crowd.withLock {
      $0.enter(number, socket, from: client, at: MonotonicReading.milliseconds())
    }
    guard isIn else { return socket.close() }
    let isServed = threads.start("vantage \(number)") { [self] in
      let stream = ByteStream(socket, stop: stopSignal)
      // A client may leave at any time; there is nothing to tell about that.
      do throws(SocketError) { try serve(stream, number, client) } catch {}
      stream.finishWriting()
      socket.close()
      crowd.withLock { $0.leave(number) }
    }
    guard !isServed else { return }
    // Nobody else would ever let it go.
    socket.close()
    crowd.withLock { $0.leave(number) }
    tell("vantage_threads_exhausted", about: "threads", [("client", client)])
  }

  private func serve(
    _ stream: ByteStream, _ number: Int, _ client: String
  ) throws(SocketError) {
    let key: SPKIPin
    do throws(SocketError) {
      key = try admission.admit(stream, until: .after(milliseconds: limits.patience))
    } catch {
      if let leftOut = strangers.withLock({ $0.take(client, at: MonotonicReading.milliseconds()) })
      {
        log.event(
          .warn, "vantage_client_refused",
          ["client": client, "reason": "\(error)", "left_out": "\(leftOut)"])
      }
      throw error
    }
    let end = Deadline.after(milliseconds: limits.life)
    let isIn = crowd.withLock { $0.prove(number, as: key, at: MonotonicReading.milliseconds()) }
    var target: VantageTarget?
    do throws(TunnelRefusal) {
      let asked = try request(stream)
      target = asked.target
      guard isIn else { throw .tooOften }
      let (server, address) = try open(asked, for: key)
      let head = "HTTP/1.1 200 OK\r\n\(TunnelAddress.field): \(address)\r\n\r\n"
      try answer(stream, Array(head.utf8))
      var relay = Relay(
        client: stream, server: server, stop: stopSignal, endsWithClient: true, until: end,
        most: limits.bytes)
      do throws(SocketError) { try relay.run() } catch { server.socket.shutdown() }
    } catch {
      tell(
        "vantage_tunnel_refused",
        about: "\(error) \(key.base64) \(target.map { "\($0)" } ?? client)",
        [
          ("client", client), ("key", key.base64), ("target", target.map { "\($0)" } ?? ""),
          ("status", "\(error.rawValue)"),
        ])
      try stream.write(error.answer, until: .after(milliseconds: limits.patience))
    }
  }

  private func answer(_ stream: ByteStream, _ bytes: [UInt8]) throws(TunnelRefusal) {
    do throws(SocketError) {
      try stream.write(bytes, until: .after(milliseconds: limits.patience))
    } catch { throw .malformed }
  }

  private func request(_ stream: ByteStream) throws(TunnelRefusal) -> TunnelRequest {
    let deadline = Deadline.after(milliseconds: limits.patience)
    var bytes: [UInt8] = []
    while true {
      if let request = try TunnelRequest.read(bytes) { return request }
      let more: [UInt8]
      do throws(SocketError) { more = try stream.read(until: deadline) } catch { throw .malformed }
      guard !more.isEmpty else { throw .malformed }
      bytes += more
    }
  }

  // MARK: - Dialling

  private func open(
    _ request: TunnelRequest, for key: SPKIPin
  ) throws(TunnelRefusal) -> (ByteStream, address: String) {
    let (rules, target) = (rules.withLock { $0 }, request.target)
    guard rules.targets.contains(target) else { throw .notEnrolled }
    let now = MonotonicReading.milliseconds()
    guard dials.withLock({ $0.ask("\(key.base64) \(target)", at: now) }) == .allowed else {
      throw .tooOften
    }
    let deadline = Deadline.after(milliseconds: limits.dialling)
    guard let found = addresses(of: target, until: deadline) else {
      tell("vantage_threads_exhausted", about: "threads", [("target", "\(target)")])
      // It says nothing of the endpoint.
      throw .tooOften
    }
    let permitted = found.filter { $0.ipAddress.map(rules.permits) ?? false }
    // No other one instead of it: what that shows would be taken for this one's.
    let asked = permitted.filter { $0.leads(to: request.address) }
    var left = order(asked.isEmpty ? permitted : asked)[...]
    while let next = left.popFirst() {
      // Each address gets its share, so that a silent one does not use up the time of the others.
      let share = Int64(deadline.pollTimeout) / Int64(left.count + 1)
      let until = min(deadline, .after(milliseconds: share))
      if let stream = try? ByteStream.dial(next, stop: stopSignal, until: until) {
        return (stream, next.address)
      }
    }
    throw .unreachable
  }

  private func addresses(of target: VantageTarget, until deadline: Deadline) -> [Endpoint]? {
    switch target.host {
    case .address(let address): [Endpoint(address: "\(address)", port: target.port)]
    case .name(let name): resolver.addresses(of: "\(name)", port: target.port, until: deadline)
    }
  }

  /// Logs what somebody else can bring about, so often at most.
  private func tell(_ event: String, about matter: String, _ fields: [(String, String)]) {
    let now = MonotonicReading.milliseconds()
    guard told.withLock({ $0.ask(matter, at: now) }) == .allowed else { return }
    log.event(.warn, event, fields: fields.map { (name: $0.0, value: $0.1) })
  }
}

extension Endpoint {
  fileprivate var ipAddress: IPAddress? {
    guard case .address(let address)? = try? HostName(address) else { return nil }
    return address
  }

  /// Whether it is that address, whatever DNS64 makes of one of them, or of both.
  func leads(to asked: IPAddress?) -> Bool {
    guard let asked, let own = ipAddress else { return false }
    return own.translated == asked.translated
  }

  /// As above.
  func leads(to other: Endpoint) -> Bool { leads(to: other.ipAddress) }
}

extension IPAddress {
  /// The bytes of the address itself behind what DNS64 makes of it (RFC 6052 section 2.1).
  fileprivate var translated: ArraySlice<UInt8> {
    let prefix = [0, 0x64, 0xff, 0x9b] + [UInt8](repeating: 0, count: 8)
    return bytes.starts(with: prefix) ? bytes.suffix(4) : bytes[...]
  }
}

/// Why a vantage point does not run.
package enum VantageError: Error, Equatable {
  /// What it was told cannot be.
  case invalid(String)
  case identity(reason: String)
  case listening(reason: String)
}

extension VantageError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .identity(let reason): "the vantage point's key cannot be used: \(reason)"
    case .listening(let reason), .invalid(let reason): reason
    }
  }
}
