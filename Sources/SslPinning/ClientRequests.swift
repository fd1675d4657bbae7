import Foundation
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Requests without a session: on Linux several times as fast as one, with the same verdicts.
///
///     do {
///       let (body, response) = try await client.data(for: URLRequest(url: url))
///     } catch let refusal as PinEvaluation {
///       // refused: nothing was sent
///     }
///
/// - Every hop is judged before a byte of it leaves. A refusal is thrown as the verdict itself, a
///   `PinEvaluation`; other failures are `URLError`s.
/// - Redirects are followed, at most 20, never to clear text. `Authorization`, `Cookie` and
///   `Proxy-Authorization` stay behind where the origin changes.
/// - No cookies are kept, nothing is cached, no passwords are looked up: a 401 is an answer.
/// - Cancelling the task ends the transfer.
extension SslPinningClient {
  /// The answer to a request, whole.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence; 60 s where it says nothing.
  ///   - timeout: seconds that everything may take, redirects and waiting included; `nil`: any time. On Linux
  ///     it is noticed up to a tenth of a second late.
  /// - Throws: `PinEvaluation` where the request was refused, `URLError` where it failed.
  /// - Important: the body is held in memory; where a server may send any amount, read
  ///   ``chunks(for:timeout:)``.
  public func data(
    for request: URLRequest, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.data(for: request, within: timeout)
  }

  /// The answer's head, and its body in chunks as they come. A slow reader slows the server down.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - timeout: as for ``data(for:timeout:)``, in seconds.
  /// - Throws: as ``data(for:timeout:)``; what goes wrong after the head, the sequence throws.
  public func chunks(
    for request: URLRequest, timeout: TimeInterval? = nil
  ) async throws -> (ResponseChunks, URLResponse) {
    try await transport.bytes(for: request, within: timeout)
  }

  /// Sends `body` instead of the request's own.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - body: all of it, in memory.
  ///   - timeout: as for ``data(for:timeout:)``, in seconds.
  /// - Throws: as ``data(for:timeout:)``.
  public func upload(
    for request: URLRequest, from body: Data, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.upload(for: request, from: body, within: timeout)
  }

  /// Sends chunks as they come, each asked for once the last was taken. On Linux nothing is asked for before
  /// the connection was accepted; on Apple's systems the first 64 KiB are, and leave after the verdict.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - chunks: the body.
  ///   - timeout: as for ``data(for:timeout:)``, in seconds.
  /// - Throws: what ``data(for:timeout:)`` throws, and what the sequence throws. A 307 or 308 fails with
  ///   `URLError.requestBodyStreamExhausted`: chunks that are gone cannot be sent again.
  public func upload<Chunks: AsyncSequence & Sendable>(
    for request: URLRequest, from chunks: Chunks, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) where Chunks.Element == Data {
    try await transport.upload(for: request, from: chunks, within: timeout)
  }
}

/// Requests without a session, by the rules of ``SslPinningClient``.
extension FixedPinsClient {
  /// The answer to a request, whole; see ``SslPinningClient/data(for:timeout:)``.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - timeout: seconds that everything may take; `nil`: any time.
  /// - Throws: `PinEvaluation` where the request was refused, `URLError` where it failed.
  public func data(
    for request: URLRequest, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.data(for: request, within: timeout)
  }

  /// The answer's head, and its body in chunks as they come; see ``SslPinningClient/chunks(for:timeout:)``.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - timeout: seconds that everything may take; `nil`: any time.
  /// - Throws: as ``data(for:timeout:)``; what goes wrong after the head, the sequence throws.
  public func chunks(
    for request: URLRequest, timeout: TimeInterval? = nil
  ) async throws -> (ResponseChunks, URLResponse) {
    try await transport.bytes(for: request, within: timeout)
  }

  /// Sends `body` instead of the request's own.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - body: all of it, in memory.
  ///   - timeout: seconds that everything may take; `nil`: any time.
  /// - Throws: as ``data(for:timeout:)``.
  public func upload(
    for request: URLRequest, from body: Data, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.upload(for: request, from: body, within: timeout)
  }

  /// Sends chunks as they come, each asked for once the last was taken.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - chunks: the body.
  ///   - timeout: seconds that everything may take; `nil`: any time.
  /// - Throws: what ``data(for:timeout:)`` throws, and what the sequence throws; after a 307 or 308
  ///   `URLError.requestBodyStreamExhausted`.
  public func upload<Chunks: AsyncSequence & Sendable>(
    for request: URLRequest, from chunks: Chunks, timeout: TimeInterval? = nil
  ) async throws -> (Data, URLResponse) where Chunks.Element == Data {
    try await transport.upload(for: request, from: chunks, within: timeout)
  }
}
