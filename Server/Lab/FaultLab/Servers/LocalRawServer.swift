import SslPinningPlatform
import TLSTools

/// A TCP server on a free port of 127.0.0.1 that is no good server: what a probe or a client must
/// survive.
public final class LocalRawServer: Sendable {
  /// What it does with a connection, whatever the client sends.
  public enum Behaviour: Sendable, Hashable {
    /// Accepts and says nothing, ever.
    case silent
    /// Accepts and closes.
    case hangUp
    /// Sends these bytes, then says nothing.
    case sends([UInt8])
    /// Sends one of these bytes after each pause, over and over.
    case drips([UInt8], pauseMilliseconds: Int)
  }

  private let acceptor: ConnectionAcceptor
  private let accepted = Locked(0)

  public init(_ behaviour: Behaviour, port: UInt16 = 0) throws(SocketError) {
    acceptor = try ConnectionAcceptor(endpoint: .loopback(port), limit: 128)
    acceptor.start { [acceptor, accepted] (stream, _) throws(SocketError) in
      accepted.withLock { $0 += 1 }
      let patience = Deadline.after(milliseconds: 600_000)
      switch behaviour {
      case .hangUp: return
      case .silent: break
      case .sends(let bytes): try stream.write(bytes, until: patience)
      case .drips(let bytes, let pause):
        while !bytes.isEmpty {
          for byte in bytes {
            guard acceptor.stop.sleep(milliseconds: pause) else { return }
            try stream.write([byte], until: patience)
          }
        }
      }
      while try !stream.read(until: patience).isEmpty {}
    }
  }

  deinit { acceptor.shutDown() }

  /// Where it listens.
  public var port: UInt16 { acceptor.endpoint.port }

  /// How many connections it accepted.
  public var connections: Int { accepted.withLock { $0 } }

  /// Stops accepting, cuts what is open, waits for the threads. Stopping twice does nothing.
  public func stop() { acceptor.shutDown() }
}
