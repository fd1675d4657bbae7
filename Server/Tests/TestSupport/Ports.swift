import Foundation

/// A port of 127.0.0.1 that nobody listens on now.
///
/// It is below those that the kernel gives to connections (`ip_local_port_range`), so that none of these takes it before a
/// server is there. Another test still may. Where a server can bind port 0 itself, let it.
public func freePort() throws -> UInt16 {
  let listener = try LoopbackSocket()
  return try listener.bindBelowConnections()
}

/// So many ports of 127.0.0.1 that nobody listens on now, each another one. Asked for one by one, thirty are
/// no thirty in one of fifty times.
public func freePorts(_ count: Int) throws -> [UInt16] {
  let listeners = try (0..<count).map { _ in try LoopbackSocket() }
  return try listeners.map { try $0.bindBelowConnections() }
}

/// A port that refuses connections: taken, and nobody listens. Unlike the port of a server that was
/// stopped, it cannot become another test's server in between.
public final class ClosedPort: Sendable {
  public let port: UInt16
  private let socket: LoopbackSocket

  public init() throws {
    socket = try LoopbackSocket()
    port = try socket.bind()
  }
}

/// A port whose connections never come to anything: its queue is full, so the kernel drops further
/// attempts in silence, as a firewall does.
public final class FullPort: Sendable {
  public let port: UInt16
  private let sockets: [LoopbackSocket]

  public init() throws {
    let listener = try LoopbackSocket()
    port = try listener.bind()
    guard listen(listener.descriptor, 0) == 0 else { throw LoopbackSocket.failure() }
    // A queue of length 0 holds one connection.
    let filling = try (0..<4).map { _ in try LoopbackSocket() }
    for socket in filling { socket.startConnecting(to: port) }
    sockets = [listener] + filling
  }
}

/// The kernel's number of the IPv4 socket that listens on a port; nil if there is none.
///
/// Whether a server has let go of its port is seen by this number alone: the port may be another
/// test's in the same moment, and answer.
public func listener(on port: UInt16) throws -> Substring? {
  let place = ":" + String(UInt32(port) | 0x1_0000, radix: 16, uppercase: true).dropFirst()
  return try socketTable().first { $0.count > 9 && $0[1].hasSuffix(place) && $0[3] == "0A" }
    .map { $0[9] }
}

/// The kernel's table of IPv4 sockets, each line in fields: proc(5), `/proc/net/tcp`.
public func socketTable() throws -> [[Substring]] {
  let table = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/net/tcp"))
  // Not `String(contentsOfFile:)`: of a file without a size that reads the first page alone.
  return String(decoding: try table.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n")
    .map { $0.split(separator: " ") }
}

/// A raw non-blocking TCP socket on loopback.
final class LoopbackSocket: Sendable {
  let descriptor: Int32

  init() throws {
    let kind = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
    descriptor = socket(AF_INET, Int32(kind), 0)
    guard descriptor >= 0 else { throw Self.failure() }
  }

  deinit { close(descriptor) }

  static func failure() -> any Error { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

  /// Binds a port that the kernel gives to no connection.
  func bindBelowConnections() throws -> UInt16 {
    for _ in 0..<100 {
      if let port = try? bind(UInt16.random(in: 10_000..<32_000)) { return port }
    }
    return try bind()
  }

  /// Binds a port, or one that the kernel chooses.
  func bind(_ port: UInt16 = 0) throws -> UInt16 {
    var address = Self.loopback(port)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    return try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        guard Foundation.bind(descriptor, $0, length) == 0,
          getsockname(descriptor, $0, &length) == 0
        else { throw Self.failure() }
      }
      return UInt16(bigEndian: pointer.pointee.sin_port)
    }
  }

  func startConnecting(to port: UInt16) {
    withUnsafePointer(to: Self.loopback(port)) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }
}
