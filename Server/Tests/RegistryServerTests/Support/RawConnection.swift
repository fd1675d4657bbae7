import Foundation
import HTTPServing
import RegistryServer
import TestSupport
import Testing

/// A TCP connection to loopback on which a test says exactly the bytes it wants. Ends with its last
/// reference; connecting and reading give up after 30 s.
final class RawConnection: Sendable {
  private let descriptor: Int32

  init(_ address: ListenAddress) throws {
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let connected: Int32
    descriptor = socket(address.isIPv6 ? AF_INET6 : AF_INET, kind, 0)
    for kind in [SO_SNDTIMEO, SO_RCVTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, kind, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    if address.isIPv6 {
      var raw = sockaddr_in6()
      raw.sin6_family = sa_family_t(AF_INET6)
      raw.sin6_port = address.port.bigEndian
      raw.sin6_addr = in6addr_loopback
      connected = Self.connect(descriptor, &raw)
    } else {
      var raw = sockaddr_in()
      raw.sin_family = sa_family_t(AF_INET)
      raw.sin_port = address.port.bigEndian
      raw.sin_addr.s_addr = inet_addr("127.0.0.1")
      connected = Self.connect(descriptor, &raw)
    }
    guard connected == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  private static func connect<Raw>(_ descriptor: Int32, _ raw: inout Raw) -> Int32 {
    withUnsafePointer(to: &raw) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<Raw>.size))
      }
    }
  }

  deinit { close(descriptor) }

  /// Sends bytes; false when the other side has closed.
  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Sends bytes; false when the other side has closed.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// Ends the sending side.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Reads until this text has come; `nil` where the connection ends or stays silent before.
  func read(until text: String) async throws -> String? {
    try await offTheCooperativePool { [self] in
      var bytes: [UInt8] = []
      var byte: UInt8 = 0
      while recv(descriptor, &byte, 1, 0) == 1 {
        bytes.append(byte)
        if bytes.suffix(text.utf8.count).elementsEqual(text.utf8) {
          return String(decoding: bytes, as: UTF8.self)
        }
      }
      return nil
    }
  }

  /// Everything up to the end of the connection; `nil` where the end does not come.
  func readToEnd() async throws -> String? {
    try await offTheCooperativePool { [self] in
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count < 0, errno == ECONNRESET { return String(decoding: bytes, as: UTF8.self) }
        guard count >= 0 else { return nil }
        guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
        bytes += chunk.prefix(count)
      }
    }
  }

  /// One request on a connection of its own, and the answer.
  static func ask(_ address: ListenAddress, _ request: String) async throws -> String {
    let connection = try RawConnection(address)
    connection.send(request)
    return try #require(try await connection.readToEnd())
  }
}
