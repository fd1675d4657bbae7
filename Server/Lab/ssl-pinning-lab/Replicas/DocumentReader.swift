import Foundation
import SslPinningPlatform

/// Requests one replica's documents continuously, on its own thread, and enters every answer in a book.
///
/// Three of four requests go over a kept connection, the fourth over a new one.
final class DocumentReader: Sendable {
  private struct Aim {
    var port: UInt16?
    /// Changes with each process of the replica.
    var number = 0
    var isOver = false
  }

  private let replica: Int
  private let files: [String]
  private let book: AnswerBook
  private let aim = Locked(Aim())
  private let ended = DispatchSemaphore(value: 0)

  /// Microseconds between two requests, so that readers leave the processors to the replicas.
  private static let pause: UInt32 = 4000

  init(of replica: Int, files: [String], book: AnswerBook) {
    (self.replica, self.files, self.book) = (replica, files, book)
    let thread = Thread { [self] in
      read()
      ended.signal()
    }
    thread.name = "reader of replica \(replica)"
    thread.stackSize = 4 << 20
    thread.start()
  }

  /// Sends requests to this port from now on; `nil` stops, because the process is about to end. A request
  /// in progress at that time may fail.
  func aim(at port: UInt16?) {
    aim.withLock { aim in
      aim.port = port
      aim.number += 1
    }
  }

  /// Stops the reader after the current answer.
  func stop() async {
    aim.withLock { $0.isOver = true }
    await withCheckedContinuation { continuation in
      Thread { [ended] in
        ended.wait()
        continuation.resume()
      }.start()
    }
  }

  private func isAimed(_ number: Int) -> Bool { aim.withLock { $0.number } == number }

  private func connection(
    _ kept: PlainConnection?, _ port: UInt16
  ) throws(PlainFailure) -> PlainConnection {
    if let kept { return kept }
    return try PlainConnection(port: port)
  }

  private func read() {
    var (kept, number, turn) = (nil as PlainConnection?, 0, 0)
    while true {
      let aim = self.aim.withLock { $0 }
      if aim.isOver { return }
      if aim.number != number { (kept, number) = (nil, aim.number) }
      usleep(Self.pause)
      guard let port = aim.port else { continue }
      turn += 1
      let file = files[turn / 4 % files.count]
      do throws(PlainFailure) {
        let isFresh = turn % 4 == 0
        let connection = try connection(isFresh ? nil : kept, port)
        if !isFresh { kept = connection }
        let answer = try connection.get("/api/v1/\(file)")
        if answer.isLast { kept = nil }
        book.enter(answer, of: file, from: replica)
      } catch {
        kept = nil
        if isAimed(number) { book.fail("\(file): \(error)", replica) }
      }
    }
  }
}

/// An HTTP answer with Content-Length, as the registry server sends it.
struct PlainAnswer: Equatable {
  var status: Int
  var body: [UInt8]
  /// Whether the server closes the connection after it.
  var isLast: Bool

  /// The first complete answer in the received bytes, and its length; `nil` if more bytes are needed.
  static func first(in bytes: [UInt8]) throws(PlainFailure) -> (PlainAnswer, length: Int)? {
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
      .split(separator: "\r\n")
    let words = (lines.first ?? "").split(separator: " ")
    func field(_ name: String) -> String? {
      lines.first { $0.hasPrefix("\(name):") }?.dropFirst(name.count + 1)
        .trimmingCharacters(in: .whitespaces)
    }
    guard words.count >= 2, words[0] == "http/1.1", let status = Int(words[1]),
      let length = field("content-length").flatMap({ Int($0) })
    else { throw .malformed }
    let body = bytes[end.upperBound...]
    guard body.count >= length else { return nil }
    return (
      PlainAnswer(
        status: status, body: Array(body.prefix(length)), isLast: field("connection") == "close"),
      end.upperBound + length
    )
  }
}

/// One clear-text HTTP/1.1 connection to a port of 127.0.0.1, kept between requests. Calls block.
final class PlainConnection {
  private let descriptor: Int32
  private var received: [UInt8] = []

  /// How many seconds an answer may take; far more than any needs.
  private static let patience = 10

  /// - Parameter window: the size of the receive buffer in bytes; `nil`: the kernel's choice.
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
      // All properties are set, so `deinit` runs and closes the socket.
      throw .notConnected(Self.reason)
    }
  }

  deinit { close(descriptor) }

  /// Requests a path and reads the whole answer.
  func get(_ path: String) throws(PlainFailure) -> PlainAnswer {
    try send(path)
    return try receive()
  }

  /// Requests a path and reads nothing yet.
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

/// Why there is no complete answer.
enum PlainFailure: Error, Equatable, CustomStringConvertible {
  case notConnected(String)
  /// Not one byte of an answer came.
  case unanswered(String)
  /// An answer began and did not end.
  case torn(String, bytes: Int)
  case malformed

  var description: String {
    switch self {
    case .notConnected(let reason): "no connection: \(reason)"
    case .unanswered(let reason): "no answer: \(reason)"
    case .torn(let reason, let bytes): "an answer ended after \(bytes) bytes: \(reason)"
    case .malformed: "the answer is no HTTP"
    }
  }
}
