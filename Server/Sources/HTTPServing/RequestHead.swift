import CMicroHTTPD
import Foundation

/// Judges the head of a request while it stands in libmicrohttpd's memory, and notes in the
/// connection what the handler will be told.
struct RequestHead {
  let connection: OpaquePointer
  let method: UnsafePointer<CChar>
  let target: UnsafePointer<CChar>
  let version: UnsafePointer<CChar>

  /// - Returns: where the body ends.
  func judge(
    _ request: HTTPConnection, _ limits: HTTPLimits
  ) throws(HeadFault) -> RequestFraming.Body {
    guard request.targetLength <= limits.target else { throw .targetTooLong }
    let reader = try readLines(into: request)
    let isHTTP10 = strcmp(version, "HTTP/1.0") == 0
    guard isHTTP10 || strcmp(version, "HTTP/1.1") == 0 else { throw .unsupportedVersion }
    guard isHTTP10 || reader.hosts == 1 else { throw .malformed }
    guard reader.lines <= limits.headerLines else { throw .tooManyLines }
    let body = try reader.framing.body(isHTTP10: isHTTP10)
    guard reader.isExpectationKnown else { throw .unknownExpectation }
    try readTarget(into: request)
    return body
  }

  private func readLines(into request: HTTPConnection) throws(HeadFault) -> HeaderReader {
    var layout: HeaderLayout?
    if HeaderLayout.isKnown {
      layout = HeaderLayout(
        method: method, target: target, targetLength: request.targetLength, version: version,
        size: pp_mhd_header_size(connection))
      guard layout != nil else { throw .malformed }
    }
    var reader = HeaderReader(connection, into: request.headers, layout: layout)
    request.headers = HTTPHeaders()
    reader.read(connection)
    guard reader.isWellFormed else { throw .malformed }
    request.headers = reader.headers
    return reader
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
  case unknownCoding
  /// An `Expect` that is not `100-continue` (RFC 9110 §10.1.1).
  case unknownExpectation
  case targetTooLong
  case tooManyLines
}

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

/// Follows the bytes of a request's head, which libmicrohttpd 0.9 leaves where they came in.
///
///     G E T _ / p a t h _ H T T P / 1 . 1 _ _ H o s t _   x _ _ _ _
///
/// It writes NULs (`_`) over what it has read: the spaces of the first line, each colon, CR and LF.
/// Names and values are pointers into the same bytes. So what it does not tell can be seen: between
/// the end of one value and the beginning of the next name stand the two bytes of a CRLF and nothing
/// else, unless a line ended with a bare LF, was folded, or had a NUL in it.
///
/// Hazard: one shape looks like a CRLF, a NUL right before a bare LF. It is read as the end of the
/// line, which it is to libmicrohttpd as well.
struct HeaderLayout {
  private let start: UnsafeRawPointer
  private var cursor: UnsafeRawPointer
  private let end: UnsafeRawPointer

  /// Whether the library is one that keeps its lines so. Later ones refuse these shapes themselves
  /// where they are told to be strict.
  static let isKnown = (90_000...90_076).contains(pp_mhd_version())

  /// The layout of a head; `nil` where the first line is already not as it must be: one space
  /// between its parts, CRLF behind it.
  ///
  /// - Parameters:
  ///   - targetLength: of the target as it came in, up to a NUL.
  ///   - size: of the whole head, with the empty line at its end.
  init?(
    method: UnsafePointer<CChar>, target: UnsafePointer<CChar>, targetLength: Int,
    version: UnsafePointer<CChar>, size: Int
  ) {
    guard target == method + strlen(method) + 1, version == target + targetLength + 1,
      strlen(version) == 8, version[9] == 0, size >= version + 12 - method
    else { return nil }
    start = UnsafeRawPointer(version + 10)
    cursor = start
    end = UnsafeRawPointer(method) + size
  }

  /// Whether the next line stands where it must.
  mutating func take(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    guard let nameStart = name.baseAddress, let valueStart = value.baseAddress,
      nameStart == cursor, valueStart > nameStart + name.count,
      valueStart + value.count + 4 <= end
    else { return false }
    let lineEnd = valueStart + value.count
    cursor = lineEnd + 2
    return lineEnd.load(as: UInt8.self) == 0 && (lineEnd + 1).load(as: UInt8.self) == 0
  }

  /// Whether nothing is left but the empty line.
  var isAtEnd: Bool {
    cursor + 2 == end && cursor.load(as: UInt8.self) == 0
      && (cursor + 1).load(as: UInt8.self) == 0
  }

  /// All lines, each as its name, a NUL, blanks, its value and two NULs.
  var block: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: cursor - start)
  }
}

/// The syntax of `Host` and of an authority in a target (RFC 9110 §7.2), narrowed to what host names
/// and addresses are made of: no user information, no list, no escape.
enum HostField {
  static func isAuthority(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = bytes.first else { return false }
    let host: Slice<UnsafeBufferPointer<UInt8>>
    if first == UInt8(ascii: "[") {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "]")), end > 2,
        bytes[1..<end].allSatisfy({
          isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
        })
      else { return false }
      host = bytes[...end]
    } else {
      host = bytes.prefix { isNameCharacter($0) }
      guard !host.isEmpty else { return false }
    }
    let port = bytes[host.endIndex...]
    guard let colon = port.first else { return true }
    return colon == UInt8(ascii: ":") && port.count <= 6
      && port.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
