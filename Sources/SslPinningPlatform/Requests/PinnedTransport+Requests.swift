import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Requests without a session of one's own: the shortest way for code that asks and reads the answer.
///
/// - Every hop is judged before a byte of it leaves. A refusal is thrown as the verdict itself, a
///   ``SslPinningRules/PinEvaluation``; other failures are `URLError`s.
/// - Redirects are followed, at most 20, never to clear text. `Authorization`, `Cookie` and
///   `Proxy-Authorization` stay behind where the origin changes.
/// - No cookies are kept, nothing is cached, no passwords are looked up: a 401 is an answer.
/// - A request is never sent twice, save for a GET, HEAD, OPTIONS or TRACE without a body whose kept
///   connection turned out dead before an answer began (RFC 9112 section 9.3.1).
/// - A HEAD request with a body is refused as `URLError.dataLengthExceedsMaximum`: it means nothing, and
///   some servers take it for an attack (RFC 9110 section 9.3.2).
/// - Cancelling the task ends the transfer.
extension PinnedTransport {
  /// The answer to a request, whole.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence; 60 s where it says nothing.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: ``SslPinningRules/PinEvaluation`` where the request was refused, `URLError` where it failed,
  ///   ``PlatformError`` where this platform cannot pin.
  /// - Important: the body is held in memory; where a server may send any amount, read
  ///   ``bytes(for:within:)``.
  public func data(
    for request: URLRequest, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) {
    try Self.checkBody(of: request, nil)
    return try await client.data(for: request, body: nil, within: seconds, transport: self)
  }

  /// The answer's head, and its body as it comes.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: as ``data(for:within:)``; what goes wrong after the head, the sequence throws.
  public func bytes(
    for request: URLRequest, within seconds: Double? = nil
  ) async throws -> (ResponseChunks, URLResponse) {
    try Self.checkBody(of: request, nil)
    return try await client.bytes(for: request, within: seconds, transport: self)
  }

  /// Sends `body` instead of the request's own.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - body: all of it, in memory.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: as ``data(for:within:)``.
  public func upload(
    for request: URLRequest, from body: Data, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) {
    let body = RequestBody.data(body)
    try Self.checkBody(of: request, body)
    return try await client.data(for: request, body: body, within: seconds, transport: self)
  }

  /// Sends chunks as they come, each asked for once the last was taken. On Linux nothing is asked for before
  /// the connection was accepted; on Apple's systems the first 64 KiB are, and leave after the verdict.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - chunks: the body.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: as ``data(for:within:)``, and what the sequence throws: then the request breaks off, so that no
  ///   server takes what came for the whole. A 307 or 308 fails with
  ///   `URLError.requestBodyStreamExhausted`: chunks that are gone cannot be sent again.
  public func upload<Chunks: AsyncSequence & Sendable>(
    for request: URLRequest, from chunks: Chunks, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) where Chunks.Element == Data {
    let body = RequestBody.sequence(chunks)
    try Self.checkBody(of: request, body)
    return try await client.data(for: request, body: body, within: seconds, transport: self)
  }

  private static func checkBody(of request: URLRequest, _ body: RequestBody?) throws {
    guard request.httpMethod == "HEAD" else { return }
    switch body {
    case .data(let data) where data.isEmpty: return
    case nil where (request.httpBody ?? Data()).isEmpty && request.httpBodyStream == nil: return
    default: break
    }
    var details: [String: Any] = [
      NSLocalizedDescriptionKey: "a HEAD request has no body; hint: send it with POST"
    ]
    details[NSURLErrorFailingURLErrorKey] = request.url
    throw URLError(.dataLengthExceedsMaximum, userInfo: details)
  }
}

/// A request's body that is not the `URLRequest`'s own.
enum RequestBody: Sendable {
  case data(Data)
  /// Gives its chunks, one after the other, to a function that returns once the chunk was taken, and
  /// false where nobody wants another.
  case chunks(@Sendable (_ put: (Data) async -> Bool) async throws -> Void)

  /// The chunks of a sequence, each asked for once the last was taken.
  static func sequence<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks) -> RequestBody
  where Chunks.Element == Data {
    .chunks { put in
      for try await chunk in chunks {
        guard await put(chunk) else { return }
      }
    }
  }
}
