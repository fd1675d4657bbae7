import CMicroHTTPD
import Foundation
import SslPinningPlatform
import SslPinningRules

/// What a handler is told of a request, once all of it is in.
///
/// HEAD arrives as GET: the server leaves the body out (RFC 9110 §9.3.2).
package struct HTTPRequest: Sendable {
  /// As sent: methods are case-sensitive (RFC 9110 §9.1).
  package var method: String
  /// The path, percent-decoded once, without the query.
  package var path: String
  /// The query's pairs in their order, percent-decoded once, `+` read as a space. A piece without
  /// `=` has an empty value.
  package var query: [(name: String, value: String)] = []
  /// The header lines.
  package var headers = HTTPHeaders()
  /// The body, whole and without its framing; empty where the path takes none.
  package var body: [UInt8] = []
  /// The caller's numeric address, without a port: the other side's, or where that is a trusted proxy, the
  /// one that it names.
  ///
  /// Hazard: behind a reverse proxy that nobody named it is the proxy's.
  package var peer: String
  /// Whether all clients may have this address: it is this machine's own, and no proxy is named.
  package var isShared = false

  /// The first value of a query name.
  package func query(_ name: String) -> String? { query.first { $0.name == name }?.value }
}

/// A response, finished when it is made and then sent any number of times, from any thread.
///
/// - libmicrohttpd counts references: a response that is dropped while it is being sent lives until
///   the last byte is out.
/// - The body is one piece of memory, however many connections read it and whether or not they are closed
///   afterwards: a client that does not read costs no copy.
package final class HTTPResponse: @unchecked Sendable {
  /// The status code.
  package let status: UInt32
  /// The body's bytes, which other responses may share.
  package let bytes: SharedBody
  /// The header lines.
  package let headers: [(name: String, value: String)]
  /// Unchecked: libmicrohttpd locks its responses, and this one is never changed again.
  let pointer: OpaquePointer?
  private let last = Locked<HTTPResponse?>(nil)

  package convenience init(
    status: UInt32, headers: [(name: String, value: String)], body: [UInt8] = []
  ) {
    self.init(status: status, headers: headers, sharing: SharedBody(body))
  }

  /// A response whose body is another one's too.
  package init(status: UInt32, headers: [(name: String, value: String)], sharing bytes: SharedBody)
  {
    self.status = status
    self.headers = headers
    self.bytes = bytes
    // libmicrohttpd keeps the bytes until nobody sends them any more, and never writes to them.
    let kept = Unmanaged.passRetained(bytes)
    pointer = MHD_create_response_from_buffer_with_free_callback_cls(
      bytes.count, bytes.start,
      { kept in
        kept.map { Unmanaged<SharedBody>.fromOpaque($0).release() }
      }, kept.toOpaque())
    guard let pointer else {
      kept.release()
      return
    }
    for (name, value) in headers { MHD_add_response_header(pointer, name, value) }
  }

  /// A copy of the body.
  package var body: [UInt8] {
    Array(UnsafeRawBufferPointer(start: bytes.start, count: bytes.count))
  }

  /// The same answer as a connection's last, made once.
  var closing: HTTPResponse {
    guard !headers.contains(where: { $0.name == "Connection" }) else { return self }
    return last.withLock { last in
      if let last { return last }
      let made = HTTPResponse(
        status: status, headers: headers + [("Connection", "close")], sharing: bytes)
      last = made
      return made
    }
  }

  deinit {
    if let pointer { MHD_destroy_response(pointer) }
  }
}

/// The bytes of a body, which live as long as any response that sends them.
///
/// Unchecked: written when they are made, and only read afterwards.
package final class SharedBody: @unchecked Sendable {
  /// Never a null pointer, even if there are none.
  let start: UnsafeMutableRawPointer
  let count: Int

  package init(_ bytes: [UInt8]) {
    count = bytes.count
    start = .allocate(byteCount: max(1, count), alignment: 1)
    bytes.withUnsafeBytes {
      if let base = $0.baseAddress { start.copyMemory(from: base, byteCount: $0.count) }
    }
  }

  deinit { start.deallocate() }
}

/// What a handler gives for a request.
package enum HTTPReply: Sendable {
  /// A finished answer.
  case now(HTTPResponse)
  /// An answer that somebody waits for: the connection is set aside, and no thread with it.
  ///
  /// The task is cancelled when the client goes away, when the server stops, and when the time for
  /// late answers is up. It should then return what it has, at once: while the server stops, that
  /// is still sent, as the connection's last answer. One that does not return in time is answered
  /// for (503).
  ///
  /// - Parameter isTrusted: whether it is for somebody who has shown a token. Strangers get a part of the
  ///   connections to wait on, see ``HTTPLimits/waiting``.
  case later(isTrusted: Bool = false, @Sendable () async -> HTTPResponse)
}

/// Answers requests. Called on the server's threads, so it must not block: it reads what is ready,
/// or gives an answer for later.
package typealias HTTPHandler = @Sendable (HTTPRequest) -> HTTPReply

/// Names whoever shows a good token in the header of a request; `nil` for strangers. Asked before a body is read, on the
/// server's threads.
package typealias HTTPTrust = @Sendable (_ path: String, _ headers: HTTPHeaders) -> String?

/// The header lines of a request.
///
/// One buffer holds them all, because most handlers look at one line or none.
package struct HTTPHeaders: Sendable {
  /// Name, NUL, value, blanks, NUL, and so on: neither part can have a NUL.
  private var bytes: [UInt8] = []

  init() {}

  /// Lines from elsewhere than a connection.
  init(_ lines: [(name: String, value: String)]) {
    for (name, value) in lines {
      var (name, value) = (name, value)
      name.withUTF8 { name in
        value.withUTF8 { append(UnsafeRawBufferPointer(name), UnsafeRawBufferPointer($0)) }
      }
    }
  }

  /// The value under a name, whatever its letter case; several lines are joined by `, `
  /// (RFC 9110 §5.3). `nil` where there is no such line. Bytes that are no UTF-8 are replaced.
  package subscript(name: String) -> String? {
    var found: String?
    var rest = bytes[...]
    while let line = Self.next(&rest) {
      guard Self.isSame(line.name, name.utf8) else { continue }
      let value = String(decoding: line.value, as: UTF8.self)
      found = found.map { "\($0), \(value)" } ?? value
    }
    return found
  }

  /// Adds a line.
  mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: name)
    bytes.append(0)
    bytes.append(contentsOf: value)
    bytes.append(0)
  }

  /// Forgets all lines and keeps the buffer, where nobody else has it.
  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// White space around a value is no part of it (RFC 9110 §5.5).
  private static func next(
    _ rest: inout ArraySlice<UInt8>
  ) -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
    guard let colon = rest.firstIndex(of: 0),
      let end = rest[(colon + 1)...].firstIndex(of: 0)
    else { return nil }
    defer { rest = rest[(end + 1)...] }
    var value = rest[(colon + 1)..<end]
    while let last = value.last, isBlank(last) { value.removeLast() }
    while let first = value.first, isBlank(first) { value.removeFirst() }
    return (rest[..<colon], value)
  }

  private static func isSame(_ name: ArraySlice<UInt8>, _ other: String.UTF8View) -> Bool {
    name.count == other.count && zip(name, other).allSatisfy { lowered($0) == lowered($1) }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// Makes and compares entity tags (RFC 9110 §8.8.3, §13.1.2).
package enum EntityTag {
  /// Bytes of an `If-None-Match` value that is read: a score of tags. Else a header full of tags would cost as much as a
  /// hundred documents.
  static let longestCondition = 1024

  /// A strong tag with its quotes: equal tags mean equal bytes.
  package static func of(_ bytes: [UInt8]) -> String {
    "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
  }

  /// Whether an `If-None-Match` value names `tag`, under the weak comparison that this header asks
  /// for. `*` names every tag. What is malformed or longer than ``longestCondition`` names nothing: the client then
  /// gets the document.
  ///
  /// - Parameter tag: a strong tag with its quotes.
  package static func matches(ifNoneMatch: String, _ tag: String) -> Bool {
    guard ifNoneMatch.utf8.count <= longestCondition else { return false }
    var rest = ifNoneMatch.utf8[...]
    rest.skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
    if rest.first == UInt8(ascii: "*") {
      rest.removeFirst()
      return rest.allSatisfy { $0 == 0x20 || $0 == 0x09 }
    }
    var found = false
    while !rest.isEmpty {
      if rest.starts(with: "W/".utf8) { rest = rest.dropFirst(2) }
      guard rest.first == UInt8(ascii: "\""),
        let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "\""))
      else { return found }
      if rest[...end].elementsEqual(tag.utf8) { found = true }
      rest = rest[rest.index(after: end)...]
      let before = rest.count
      rest.skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
      guard rest.isEmpty || rest.count < before else { return found }
    }
    return found
  }
}

extension Substring.UTF8View {
  fileprivate mutating func skip(while isSkipped: (UInt8) -> Bool) {
    while let byte = first, isSkipped(byte) { removeFirst() }
  }
}
