import CMicroHTTPD

/// Reads the header lines of a request and judges what libmicrohttpd lets pass and another parser
/// would read differently. A proxy in front that disagrees about where a request ends can be made to
/// take the answer to one for the answer to the next.
///
/// - A name is a token: `Content-Length : 5` is no other header, it is an error (RFC 9112 §5.1).
/// - A value has no control character but the tab (RFC 9110 §5.5).
/// - `Host` stands once at most, and is an authority (RFC 9112 §3.2).
/// - Lines end with CRLF and are not folded (§2.2, §5.2), and no value goes on behind a NUL.
///   libmicrohttpd tells none of this, but it leaves the lines where they came in: see
///   ``HeaderLayout``.
struct HeaderReader {
  private(set) var headers: HTTPHeaders
  private(set) var framing = RequestFraming()
  private(set) var hosts = 0
  private(set) var lines = 0
  private(set) var isWellFormed = true
  private(set) var isExpectationKnown = true
  private var layout: HeaderLayout?

  /// - Parameters:
  ///   - headers: a buffer to use again; its lines are forgotten.
  ///   - layout: where the lines must stand; `nil` where the library's way with them is not known.
  init(_ connection: OpaquePointer, into headers: HTTPHeaders, layout: HeaderLayout?) {
    self.headers = headers
    self.headers.removeAll()
    self.layout = layout
  }

  /// Reads all lines.
  mutating func read(_ connection: OpaquePointer) {
    withUnsafeMutablePointer(to: &self) { reader in
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, readHeaderLine, reader)
    }
    guard let layout else { return }
    if layout.isAtEnd { headers.append(layout.block) } else { isWellFormed = false }
  }

  fileprivate mutating func line(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    lines += 1
    if !Self.isWellFormed(name, value) { isWellFormed = false }
    if layout?.take(name, value) == false { isWellFormed = false }
    switch name.count {
    case 4 where Self.isSame(name, "host"):
      hosts += 1
      let isAuthority = value.withMemoryRebound(to: UInt8.self) {
        HostField.isAuthority(Self.trimmed($0))
      }
      if hosts > 1 || !isAuthority { isWellFormed = false }
    case 6 where Self.isSame(name, "expect"):
      isExpectationKnown = isExpectationKnown && Self.isSame(value, "100-continue")
    case 14 where Self.isSame(name, "content-length"): framing.contentLength(value)
    case 17 where Self.isSame(name, "transfer-encoding"): framing.transferEncoding(value)
    default: break
    }
    if layout == nil { headers.append(name, value) }
  }

  private static func isWellFormed(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> Bool {
    let token = ByteSet.token
    return !name.isEmpty && name.allSatisfy { token.contains($0) }
      && value.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }
  }

  private static func trimmed(_ value: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
    let end = value.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 + 1 } ?? 0
    return UnsafeBufferPointer(rebasing: value[..<end])
  }

  /// Tokens are compared without letter case; only letters differ in the sixth bit.
  private static func isSame(_ name: UnsafeRawBufferPointer, _ token: StaticString) -> Bool {
    guard name.count == token.utf8CodeUnitCount else { return false }
    return name.indices.allSatisfy {
      name[$0] | 0x20 == token.utf8Start[$0] && ByteSet.token.contains(name[$0])
    }
  }
}

private let readHeaderLine: MHD_KeyValueIteratorN = {
  context, _, name, nameSize, value, valueSize in
  if let context {
    context.assumingMemoryBound(to: HeaderReader.self).pointee.line(
      UnsafeRawBufferPointer(start: name, count: name == nil ? 0 : nameSize),
      UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize))
  }
  return .YES
}
