import CMicroHTTPD

/// A response, finished when it is made and then sent any number of times, from any thread.
///
/// libmicrohttpd counts references: a response that is dropped while it is being sent lives until
/// the last byte is out.
package final class HTTPResponse: @unchecked Sendable {
  /// The status code.
  package let status: UInt32
  /// The body.
  package let body: [UInt8]
  /// The header lines.
  package let headers: [(name: String, value: String)]
  /// Unchecked: libmicrohttpd locks its responses, and this one is never changed again.
  let pointer: OpaquePointer?

  package init(status: UInt32, headers: [(name: String, value: String)], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
    pointer = body.withUnsafeBytes { bytes in
      // Copied, so the pointer loses its constness without anybody writing through it.
      MHD_create_response_from_buffer(
        bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
    }
    guard let pointer else { return }
    for (name, value) in headers { MHD_add_response_header(pointer, name, value) }
  }

  /// The same answer as a connection's last.
  var closing: HTTPResponse {
    guard !headers.contains(where: { $0.name == "Connection" }) else { return self }
    return HTTPResponse(status: status, headers: headers + [("Connection", "close")], body: body)
  }

  deinit {
    if let pointer { MHD_destroy_response(pointer) }
  }
}
