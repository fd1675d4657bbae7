import Foundation

/// One HTTP request to a program on loopback, and its answer: `URLSession` on Linux refuses header
/// lines that have no space behind their colon, and chromedriver writes such.
struct LoopbackExchange: Sendable {
  let port: UInt16
  /// For how long a command may keep chromedriver busy.
  private static let patience = timeval(tv_sec: 120, tv_usec: 0)

  /// The body of the answer, whatever its status.
  func ask(_ method: String, _ path: String, body: [UInt8]) async throws -> [UInt8] {
    let head = """
      \(method) \(path) HTTP/1.1\r
      Host: 127.0.0.1:\(port)\r
      Content-Type: application/json\r
      Content-Length: \(body.count)\r
      Connection: close\r
      \r

      """
    return try await offTheCooperativePool { try exchange([UInt8](head.utf8) + body) }
  }

  private func exchange(_ request: [UInt8]) throws -> [UInt8] {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw LoopbackSocket.failure() }
    defer { close(descriptor) }
    var patience = Self.patience
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    try connect(descriptor)
    var rest = request[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw LoopbackSocket.failure() }
      rest = rest.dropFirst(count)
    }
    var answer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let body = Self.body(of: answer) { return body }
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 else { throw LoopbackSocket.failure() }
      answer += chunk.prefix(count)
    }
  }

  private func connect(_ descriptor: Int32) throws {
    let connected = withUnsafePointer(to: LoopbackSocket.loopback(port)) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else { throw LoopbackSocket.failure() }
  }

  /// The body, once all of it is there.
  private static func body(of answer: [UInt8]) -> [UInt8]? {
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: answer[..<end.lowerBound], as: UTF8.self).lowercased()
      .split(separator: "\r\n")
    let length = lines.first { $0.hasPrefix("content-length:") }
      .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
    let body = answer[end.upperBound...]
    guard let length, body.count >= length else { return nil }
    return Array(body.prefix(length))
  }
}
