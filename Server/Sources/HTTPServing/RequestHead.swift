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
