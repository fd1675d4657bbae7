import CSslPinningShims
import Foundation
import SslPinningPlatform

/// Owns one non-blocking TCP socket.
///
/// The lock makes `shutdown()` from another thread safe against `close()`: without it the descriptor
/// could already belong to another file.
package final class Socket: @unchecked Sendable {
  private let lock = NSLock()
  private var isClosed = false
  /// The descriptor, for the thread that reads and writes.
  package let descriptor: Int32

  package init(owning descriptor: Int32) { self.descriptor = descriptor }

  deinit { close() }

  package func close() {
    lock.withLock {
      guard !isClosed else { return }
      isClosed = true
      _ = Foundation.close(descriptor)
    }
  }

  /// Ends both directions, from any thread; a thread that waits on the socket wakes up.
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
    guard let local = socket.endpoint(by: { getsockname($0, $1, $2) }) else {
      throw .system(operation: "getsockname", code: errno)
    }
    return (socket, local)
  }

  /// The other side of the connection; `nil` once it has gone.
  package var peer: Endpoint? { endpoint(by: { getpeername($0, $1, $2) }) }

  private func endpoint(
    by ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Endpoint? {
    var found = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &found) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        ask(descriptor, $0, &length) == 0 ? SocketAddress($0, length: length)?.endpoint : nil
      }
    }
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

  /// Starts to connect. The socket turns writable when the attempt is over, and `connectionError()` tells
  /// the result.
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

  /// The errno of the connection attempt; 0 if it succeeded.
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

  /// Turns off Nagle's algorithm: small answers would wait for the peer's delayed acknowledgement.
  private static func sendAtOnce(_ descriptor: Int32) {
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
  }
}

/// A `sockaddr` of either family.
struct SocketAddress {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  /// Takes an address as the resolver or the kernel gave it.
  init?(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
    guard Int(length) <= MemoryLayout<sockaddr_storage>.size else { return nil }
    self.length = length
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
    }
  }

  init(_ endpoint: Endpoint) throws(SocketError) {
    var v4 = sockaddr_in()
    var v6 = sockaddr_in6()
    if inet_pton(AF_INET, endpoint.address, &v4.sin_addr) == 1 {
      v4.sin_family = sa_family_t(AF_INET)
      v4.sin_port = endpoint.port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
    } else if inet_pton(AF_INET6, endpoint.address, &v6.sin6_addr) == 1 {
      v6.sin6_family = sa_family_t(AF_INET6)
      v6.sin6_port = endpoint.port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v6, as: sockaddr_in6.self) }
    } else {
      throw .notAnAddress(endpoint.address)
    }
  }

  /// The address and port as text; nil for a family that is neither IPv4 nor IPv6.
  var endpoint: Endpoint? {
    withUnsafeBytes(of: storage) { bytes in
      var text = [CChar](repeating: 0, count: 64)
      switch family {
      case AF_INET:
        var address = bytes.load(as: sockaddr_in.self)
        inet_ntop(AF_INET, &address.sin_addr, &text, socklen_t(text.count))
        return Endpoint(address: Self.string(text), port: UInt16(bigEndian: address.sin_port))
      case AF_INET6:
        var address = bytes.load(as: sockaddr_in6.self)
        inet_ntop(AF_INET6, &address.sin6_addr, &text, socklen_t(text.count))
        return Endpoint(address: Self.string(text), port: UInt16(bigEndian: address.sin6_port))
      default: return nil
      }
    }
  }

  /// Hands the address to a system call.
  func withSockaddr<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }

  private static func string(_ text: [CChar]) -> String {
    String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// Why a socket could not be created, bound or connected, or a byte stream failed.
public enum SocketError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A system call failed; `code` is its errno.
  case system(operation: String, code: Int32)
  /// The text is not a numeric IP address.
  case notAnAddress(String)
  /// The deadline passed first.
  case timeout
  /// The server or proxy that owns the stream was stopped.
  case stopped
  /// The other side closed the stream, or the TLS library failed.
  case closed(reason: String)

  public var description: String {
    switch self {
    case .system(let operation, let code): "\(operation): \(String(cString: strerror(code)))"
    case .notAnAddress(let text): "'\(text)' is no numeric IP address"
    case .timeout: "the time was up"
    case .stopped: "stopped"
    case .closed(let reason): "closed: \(reason)"
    }
  }
}

extension SocketError: ExplainedError {}

/// An IP address and a port to dial or to listen on.
public struct Endpoint: Sendable, Hashable, CustomStringConvertible {
  /// A numeric IPv4 or IPv6 address, without brackets.
  public let address: String
  public let port: UInt16

  /// - Parameter address: numeric; a name is never looked up, and connecting to one fails.
  public init(address: String, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// A port on 127.0.0.1.
  public static func loopback(_ port: UInt16) -> Endpoint {
    Endpoint(address: "127.0.0.1", port: port)
  }

  public var description: String {
    address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
  }
}
