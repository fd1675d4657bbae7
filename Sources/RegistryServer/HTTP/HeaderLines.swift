import CMicroHTTPD

/// The header lines of a request, judged for what libmicrohttpd lets pass and another parser would
/// read differently. A proxy in front that disagrees about where a request ends can be made to take
/// the answer to one for the answer to the next.
///
/// - A name is a token: `Content-Length : 5` is no other header, it is an error (RFC 9112 §5.1).
/// - A value has no CR (RFC 9110 §5.5). Hazard: a NUL in a value ends it inside libmicrohttpd 0.9, which
///   nothing here can see; proxies refuse it.
/// - `Content-Length` and `Host` stand once at most (RFC 9112 §6.3, §3.2).
struct HeaderLines {
  private(set) var areUnambiguous = true
  private var hosts = 0
  private var lengths = 0

  init(of connection: OpaquePointer) {
    withUnsafeMutablePointer(to: &self) { lines in
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, judgeHeaderLine, lines)
    }
  }

  fileprivate mutating func judge(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    if Self.isSame(name, "host") { hosts += 1 }
    if Self.isSame(name, "content-length") { lengths += 1 }
    let isWellFormed =
      !name.isEmpty && name.allSatisfy(Self.isTokenByte)
      && value.allSatisfy { $0 != 0x0a && $0 != 0x0d }
    if !isWellFormed || hosts > 1 || lengths > 1 { areUnambiguous = false }
  }

  /// Tokens are compared without letter case; only letters differ in the sixth bit.
  private static func isSame(_ name: UnsafeRawBufferPointer, _ token: String) -> Bool {
    name.count == token.utf8.count
      && zip(name, token.utf8).allSatisfy { isTokenByte($0) && $0 | 0x20 == $1 }
  }

  /// RFC 9110 §5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

private let judgeHeaderLine: MHD_KeyValueIteratorN = {
  context, _, name, nameSize, value, valueSize in
  if let context {
    context.assumingMemoryBound(to: HeaderLines.self).pointee.judge(
      UnsafeRawBufferPointer(start: name, count: name == nil ? 0 : nameSize),
      UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize))
  }
  return .YES
}
