import Foundation
import TestSupport

/// A TCP client without manners: sends what it is told and may leave at any time. Under TLS it is
/// `openssl s_client` behind a socket pair.
final class RawClient: @unchecked Sendable {
  enum Failure: Error {
    case socket(Int32)
    case ended
  }

  private var descriptor: Int32
  private var process: Process?

  /// Connects to a loopback port in clear text.
  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(descriptor, $0, 16)
      }
    }
    // What is set is closed by `deinit`, also when this throws.
    guard code == 0 else { throw Failure.socket(errno) }
    var timeout = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
  }

  private init(process: Process, descriptor: Int32) {
    (self.process, self.descriptor) = (process, descriptor)
  }

  deinit { close() }

  /// Connects over TLS and finishes the handshake.
  static func connect(to site: TestSite) async throws -> RawClient {
    let before = site.server.counts.handshakesCompleted
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = [
      "s_client", "-connect", "127.0.0.1:\(site.server.port)", "-servername", "site.test", "-quiet",
    ]
    // A socket, not a pipe: writing to a client that has ended must not raise SIGPIPE here.
    var pair: [Int32] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
    guard socketpair(AF_UNIX, Int32(kind), 0, &pair) == 0 else { throw Failure.socket(errno) }
    let theirs = FileHandle(fileDescriptor: pair[1], closeOnDealloc: true)
    (process.standardInput, process.standardOutput) = (theirs, theirs)
    process.standardError = FileHandle.nullDevice
    try process.run()
    try theirs.close()
    let client = RawClient(process: process, descriptor: pair[0])
    while site.server.counts.handshakesCompleted == before {
      guard process.isRunning else { throw Failure.ended }
      // why: the server counts on its own thread; there is nothing to wait on but the count
      try await Task.sleep(nanoseconds: 1_000_000)
    }
    return client
  }

  /// Sends a whole text and reads to the end of the answer.
  static func exchange(_ text: String, port: UInt16) async throws -> String {
    try await offTheCooperativePool {
      let client = try RawClient(port: port)
      try client.send(text)
      return try client.receive(untilSuffix: nil)
    }
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    guard Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw Failure.socket(errno)
    }
  }

  /// So many bytes of the answer.
  func read(count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard recv(descriptor, &bytes, count, Int32(MSG_WAITALL)) == count else {
      throw Failure.ended
    }
    return bytes
  }

  /// One request on the kept connection; the answer has a Content-Length.
  func get(_ path: String) async throws -> String {
    try await offTheCooperativePool { [self] in
      try send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
      return try receive(untilSuffix: path)
    }
  }

  /// Leaves without a word.
  func close() {
    guard descriptor >= 0 else { return }
    if let process { kill(process.processIdentifier, SIGKILL) }
    Foundation.close(descriptor)
    descriptor = -1
  }

  private func receive(untilSuffix suffix: String?) throws -> String {
    var text = ""
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Foundation.read(descriptor, &buffer, buffer.count)
      if count < 0, errno != ECONNRESET { throw Failure.socket(errno) }
      guard count > 0 else {
        if suffix != nil { throw Failure.ended }
        return text
      }
      text += String(decoding: buffer.prefix(count), as: UTF8.self)
      if let suffix, text.hasSuffix(suffix) { return text }
    }
  }
}
