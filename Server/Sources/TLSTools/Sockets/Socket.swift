import CSslPinningShims
import Foundation

/// Owns one non-blocking TCP socket.
///
/// The lock makes `shutdown()` from another thread safe against `close()`: without it the number
/// could already belong to somebody else's file.
package final class Socket: @unchecked Sendable {
  private let lock = NSLock()
  private var isClosed = false
  /// The number, for the thread that reads and writes.
  package let descriptor: Int32

  init(owning descriptor: Int32) { self.descriptor = descriptor }

  deinit { close() }

  package func close() {
    lock.withLock {
      guard !isClosed else { return }
      isClosed = true
      _ = Foundation.close(descriptor)
    }
  }

  /// Ends both directions, from any thread: the one that waits on the socket wakes up.
  package func shutdown() {
    lock.withLock {
      if !isClosed { _ = Foundation.shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Tells the other side that nothing more will come; it may still send.
  func finishWriting() {
    lock.withLock {
      if !isClosed { _ = Foundation.shutdown(descriptor, Int32(SHUT_WR)) }
    }
  }

  /// A listening socket and where it listens; port 0 takes a free one.
  package static func listen(on endpoint: Endpoint) throws(SocketError) -> (Socket, Endpoint) {
    let address = try SocketAddress(endpoint)
    let socket = try make(address.family)
    var yes: Int32 = 1
    setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
    guard address.withSockaddr({ bind(socket.descriptor, $0, $1) }) == 0 else {
      throw .system(operation: "bind to \(endpoint)", code: errno)
    }
    guard Foundation.listen(socket.descriptor, 512) == 0 else {
      throw .system(operation: "listen on \(endpoint)", code: errno)
    }
    var bound = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let local: SocketAddress? = withUnsafeMutablePointer(to: &bound) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(socket.descriptor, $0, &length) == 0
          ? SocketAddress($0, length: length) : nil
      }
    }
    guard let local = local?.endpoint else {
      throw .system(operation: "getsockname", code: errno)
    }
    return (socket, local)
  }

  /// The next connection, or nil when none waits.
  package func accept() throws(SocketError) -> Socket? {
    let accepted = pp_tls_accept(descriptor)
    if accepted >= 0 {
      Self.sendAtOnce(accepted)
      return Socket(owning: accepted)
    }
    switch errno {
    case EAGAIN, EINTR, ECONNABORTED, EPROTO: return nil
    default: throw .system(operation: "accept", code: errno)
    }
  }

  /// A socket whose connection is under way; it turns writable when that is decided, and
  /// `connectionError()` says how.
  static func startConnecting(to address: SocketAddress) throws(SocketError) -> Socket {
    let socket = try make(address.family)
    sendAtOnce(socket.descriptor)
    while address.withSockaddr({ connect(socket.descriptor, $0, $1) }) != 0 {
      if errno == EINTR { continue }
      guard errno == EINPROGRESS else { throw .system(operation: "connect", code: errno) }
      break
    }
    return socket
  }

  /// The errno of a connection that was under way; 0 when it stands.
  func connectionError() -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(4)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else { return errno }
    return code
  }

  private static func make(_ family: Int32) throws(SocketError) -> Socket {
    let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
    let descriptor = socket(family, Int32(kind), 0)
    guard descriptor >= 0 else { throw .system(operation: "socket", code: errno) }
    return Socket(owning: descriptor)
  }

  /// Small answers would otherwise wait for the peer's delayed acknowledgement.
  private static func sendAtOnce(_ descriptor: Int32) {
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
  }
}
