import Foundation

/// One clear-text HTTP/1.1 connection to a port of 127.0.0.1, kept between requests. Calls block.
final class PlainConnection {
  private let descriptor: Int32
  private var received: [UInt8] = []

  /// How long an answer may take, in seconds: far longer than any does.
  private static let patience = 10

  /// - Parameter window: bytes that the kernel takes before anybody reads; `nil`: its own choice.
  init(port: UInt16, window: Int32? = nil) throws(PlainFailure) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .notConnected(Self.reason) }
    if var window {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &window, socklen_t(MemoryLayout<Int32>.size))
    }
    var patience = timeval(tv_sec: Self.patience, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(
        descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let isConnected = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else {
      // `deinit` runs: every property has its value.
      throw .notConnected(Self.reason)
    }
  }

  deinit { close(descriptor) }

  /// Asks for a path and reads the whole answer.
  func get(_ path: String) throws(PlainFailure) -> PlainAnswer {
    try send(path)
    return try receive()
  }

  /// Asks for a path and reads nothing yet.
  func send(_ path: String) throws(PlainFailure) {
    var rest = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw .unanswered(Self.reason) }
      rest = rest.dropFirst(count)
    }
  }

  /// Reads one whole answer.
  func receive() throws(PlainFailure) -> PlainAnswer {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let (answer, length) = try PlainAnswer.first(in: received) {
        received.removeFirst(length)
        return answer
      }
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 else {
        let reason = count == 0 ? "the server closed the connection" : Self.reason
        throw received.isEmpty ? .unanswered(reason) : .torn(reason, bytes: received.count)
      }
      received += chunk.prefix(count)
    }
  }

  private static var reason: String { String(cString: strerror(errno)) }
}
