import CMicroHTTPD
import Foundation
import SslPinningPlatform

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
