/// Where a request's body ends (RFC 9112 §6.3), judged so that no proxy in front can see another
/// end.
///
/// - `Content-Length` stands once, in digits alone. `Transfer-Encoding` stands once, is exactly
///   `chunked`, and never beside a `Content-Length` nor in HTTP/1.0 (§6.1).
/// - A coding that is not understood is 501 where `chunked` comes last, and 400 otherwise: then
///   nothing says where the body ends.
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
  private var isChunkedLast = false

  mutating func contentLength(_ value: UnsafeRawBufferPointer) {
    lengths += 1
    length = Self.digits(value)
  }

  /// - Parameter value: as it stands in the line, since libmicrohttpd compares it as a whole.
  mutating func transferEncoding(_ value: UnsafeRawBufferPointer) {
    codings += 1
    let lowered = String(decoding: value, as: UTF8.self).lowercased()
    isChunked = lowered == "chunked"
    let coding = lowered.split(separator: ",", omittingEmptySubsequences: false).last ?? ""
    isChunkedLast = coding.drop { $0 == " " || $0 == "\t" } == "chunked"
  }

  func body(isHTTP10: Bool) throws(HeadFault) -> Body {
    guard lengths <= 1, codings <= 1, lengths + codings <= 1 else { throw .malformed }
    if codings == 1 {
      guard !isHTTP10, isChunkedLast else { throw .malformed }
      guard isChunked else { throw .unknownCoding }
      return .chunked
    }
    guard lengths == 1 else { return .none }
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
