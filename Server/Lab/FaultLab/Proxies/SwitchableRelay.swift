import SslPinningPlatform
import TLSTools

/// A TCP forwarder on one loopback port whose destination can be changed while it runs: the same
/// URL leads to the real server before an attack and to the attacker during it.
///
/// It carries bytes without reading them.
public final class SwitchableRelay: Sendable {
  private let core: RelayCore

  /// Starts forwarding from a free port of 127.0.0.1.
  public init(
    to destination: Endpoint, port: UInt16 = 0, connectionLimit: Int = 256
  ) throws(SocketError) {
    core = try RelayCore(destination: destination, port: port, connectionLimit: connectionLimit)
  }

  deinit { core.acceptor.shutDown() }

  /// Where it listens.
  public var port: UInt16 { core.acceptor.endpoint.port }

  /// Where new connections go.
  public var destination: Endpoint { core.destination.withLock { $0 } }

  /// How many connections were accepted so far.
  public var connections: Int { core.connections.withLock { $0 } }

  /// Sends new connections somewhere else.
  ///
  /// - Parameter closingConnections: cuts open connections; otherwise they keep their destination.
  public func redirect(to destination: Endpoint, closingConnections: Bool = true) {
    core.destination.withLock { $0 = destination }
    if closingConnections { core.acceptor.endAll() }
  }

  /// Stops carrying bytes but keeps all connections open, like a network that loses all packets; or
  /// resumes.
  public func suspend(_ isSuspended: Bool) { core.isSuspended.withLock { $0 = isSuspended } }

  /// Waits so many milliseconds before every 64 KiB.
  public func slow(milliseconds: Int) { core.pause.withLock { $0 = milliseconds } }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { core.acceptor.shutDown() }
}

/// The state that the relay's threads hold; separate, so that a relay stops when it is released.
private final class RelayCore: Sendable {
  let acceptor: ConnectionAcceptor
  let destination: Locked<Endpoint>
  let connections = Locked(0)
  let isSuspended = Locked(false)
  let pause = Locked(0)

  init(destination: Endpoint, port: UInt16, connectionLimit: Int) throws(SocketError) {
    self.destination = Locked(destination)
    acceptor = try ConnectionAcceptor(endpoint: .loopback(port), limit: connectionLimit)
    acceptor.start { [self] (client, _) throws(SocketError) in
      connections.withLock { $0 += 1 }
      while isSuspended.withLock({ $0 }) {
        guard acceptor.stop.sleep(milliseconds: 20) else { throw .stopped }
      }
      let server = try ByteStream.dial(
        self.destination.withLock { $0 }, stop: acceptor.stop, until: .after(milliseconds: 10_000))
      var relay = Relay(
        client: client, server: server, stop: acceptor.stop,
        isSuspended: { [isSuspended, pause, stop = acceptor.stop] in
          let pause = pause.withLock { $0 }
          if pause > 0 { _ = stop.sleep(milliseconds: pause) }
          return isSuspended.withLock { $0 }
        })
      try relay.run()
    }
  }
}
