import CMicroHTTPD
import Foundation

/// The head of a request as libmicrohttpd hands it out, judged before anything is answered.
///
/// What two parsers could read differently is refused, and the connection closed: a proxy in front that
/// disagrees about where a request ends can be made to take the answer to one for the answer to the next.
/// The library is told to be strict, but 0.9.75 still lets most of it pass (ADR 16).
struct RequestHead {
  let connection: OpaquePointer
  let method: UnsafePointer<CChar>
  let target: UnsafePointer<CChar>
  let version: UnsafePointer<CChar>

  /// Judges the head and notes in the connection what the handler will be told.
  ///
  /// - Returns: where the body ends.
  func judge(
    _ request: HTTPConnection, _ limits: HTTPLimits
  ) throws(HeadFault) -> RequestFraming.Body {
    guard request.targetLength <= limits.target else { throw .targetTooLong }
    var reader = HeaderReader(into: &request.headers, ends: try lineEnds(request.targetLength))
    guard reader.read(connection) else { throw .malformed }
    request.headers = reader.headers
    let isHTTP10 = strcmp(version, "HTTP/1.0") == 0
    guard isHTTP10 || strcmp(version, "HTTP/1.1") == 0 else { throw .unsupportedVersion }
    guard isHTTP10 || reader.hosts == 1 else { throw .malformed }
    guard reader.lines <= limits.headerLines else { throw .tooManyLines }
    let body = try reader.framing.body(isHTTP10: isHTTP10)
    guard reader.isExpectationKnown else { throw .unknownExpectation }
    try readTarget(into: request)
    return body
  }

  private func lineEnds(_ targetLength: Int) throws(HeadFault) -> LineEnds? {
    guard HTTPDaemon.hasOldParser else { return nil }
    guard
      let ends = LineEnds(
        method: method, target: target, targetLength: targetLength, version: version,
        size: pp_mhd_header_size(connection))
    else { throw .malformed }
    return ends
  }

  private func readTarget(into request: HTTPConnection) throws(HeadFault) {
    let name = UnsafeBufferPointer(
      start: UnsafeRawPointer(method).assumingMemoryBound(to: UInt8.self), count: strlen(method))
    guard !name.isEmpty, name.allSatisfy({ ByteSet.token.contains($0) }) else {
      throw .malformed
    }
    let method = String(decoding: name, as: UTF8.self)
    let target = UnsafeBufferPointer(
      start: UnsafeRawPointer(target).assumingMemoryBound(to: UInt8.self), count: strlen(target))
    guard let path = TargetPath.path(of: target, method: method) else { throw .malformedPath }
    if !request.query.isEmpty {
      guard let pairs = QueryString.pairs(request.query) else { throw .malformedQuery }
      request.pairs = pairs
    }
    request.method = method == "HEAD" ? "GET" : method
    request.path = path
  }
}

/// What is wrong with the head of a request.
enum HeadFault: Error, Equatable {
  /// A line or the framing is malformed or ambiguous.
  case malformed
  case malformedPath
  case malformedQuery
  /// The version is neither HTTP/1.0 nor HTTP/1.1.
  case unsupportedVersion
  /// An `Expect` that is not `100-continue` (RFC 9110 §10.1.1).
  case unknownExpectation
  case targetTooLong
  case tooManyLines
}

/// Reads the header lines of a request.
///
/// - A name is a token: `Content-Length : 5` is no other header, it is an error (RFC 9112 §5.1).
/// - A value has no control character but the tab (RFC 9110 §5.5).
/// - `Host` stands once at most, and is an authority (RFC 9112 §3.2).
/// - Lines end with CRLF and are not folded (§2.2, §5.2): see ``LineEnds``.
private struct HeaderReader {
  private(set) var headers: HTTPHeaders
  private(set) var framing = RequestFraming()
  private(set) var hosts = 0
  private(set) var lines = 0
  private(set) var isExpectationKnown = true
  private var isWellFormed = true
  private var ends: LineEnds?

  /// - Parameters:
  ///   - buffer: taken, and its lines forgotten: while nobody else has it, it is used again.
  ///   - ends: where the lines must stand; `nil` if the library refuses other line ends itself.
  init(into buffer: inout HTTPHeaders, ends: LineEnds?) {
    headers = HTTPHeaders()
    swap(&headers, &buffer)
    headers.removeAll()
    self.ends = ends
  }

  /// Reads all lines; false if one is malformed.
  mutating func read(_ connection: OpaquePointer) -> Bool {
    withUnsafeMutablePointer(to: &self) { reader in
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, readHeaderLine, reader)
    }
    return isWellFormed && ends?.areAllRead != false
  }

  fileprivate mutating func line(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    lines += 1
    if !Self.isWellFormed(name, value) || ends?.take(name, value) == false { isWellFormed = false }
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
    headers.append(name, value)
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
  fileprivate static func isSame(_ name: UnsafeRawBufferPointer, _ token: StaticString) -> Bool {
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

/// Tells from addresses whether each line of a head ends with CRLF and no byte of it was passed over.
///
/// libmicrohttpd 0.9.75 ends a line at a bare LF, a name or value at a NUL, and glues a folded line to the
/// *name* before it, and says none of it. But what it hands out are pointers into the head as it came in, and
/// the head's size. So all bytes are accounted for: two lie between a value and the next name, and two more
/// behind the last. Nothing is read through these pointers that was not handed out. See ADR 16.
///
/// Hazard: a NUL right before a bare LF also makes two bytes. It passes as the end of the line, which it is to
/// the library as well.
private struct LineEnds {
  /// Where the next line must begin.
  private var next: UnsafeRawPointer
  private let end: UnsafeRawPointer

  /// - Parameters:
  ///   - targetLength: of the target as it came in, up to a NUL.
  ///   - size: of the whole head, with the empty line at its end.
  /// - Returns: `nil` if more than one space stands between the parts of the first line, or a NUL in one.
  init?(
    method: UnsafePointer<CChar>, target: UnsafePointer<CChar>, targetLength: Int,
    version: UnsafePointer<CChar>, size: Int
  ) {
    guard target == method + strlen(method) + 1, version == target + targetLength + 1 else {
      return nil
    }
    next = UnsafeRawPointer(version + strlen(version) + 2)
    end = UnsafeRawPointer(method) + size
  }

  /// Whether the next line stands where it must.
  mutating func take(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let nameStart = name.baseAddress, let valueStart = value.baseAddress,
      nameStart == next, valueStart > nameStart + name.count
    else { return false }
    next = valueStart + value.count + 2
    return true
  }

  /// Whether nothing is left but the empty line.
  var areAllRead: Bool { next + 2 == end }
}

/// Where a request's body ends (RFC 9112 §6.3), judged so that no proxy in front can see another end.
///
/// - `Content-Length` stands once, in digits alone.
/// - `Transfer-Encoding` stands once, is exactly `chunked`, and never beside a `Content-Length` nor in
///   HTTP/1.0 (§6.1). With any other coding nothing that is served here says where the body ends.
struct RequestFraming {
  enum Body: Equatable {
    case none
    case length(UInt64)
    case chunked
  }

  private var lengths = 0
  private var length: UInt64?
  private var codings = 0
  private var isChunked = false

  mutating func contentLength(_ value: UnsafeRawBufferPointer) {
    lengths += 1
    length = Self.digits(value)
  }

  /// - Parameter value: as it stands in the line, since libmicrohttpd compares it as a whole.
  mutating func transferEncoding(_ value: UnsafeRawBufferPointer) {
    codings += 1
    isChunked = HeaderReader.isSame(value, "chunked")
  }

  func body(isHTTP10: Bool) throws(HeadFault) -> Body {
    guard lengths + codings > 0 else { return .none }
    guard lengths + codings == 1 else { throw .malformed }
    if codings == 1 {
      guard isChunked, !isHTTP10 else { throw .malformed }
      return .chunked
    }
    guard let length else { throw .malformed }
    return length == 0 ? .none : .length(length)
  }

  private static func digits(_ value: UnsafeRawBufferPointer) -> UInt64? {
    guard (1...19).contains(value.count) else { return nil }
    var number: UInt64 = 0
    for byte in value {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      number = number * 10 + UInt64(byte - UInt8(ascii: "0"))
    }
    return number
  }
}
