import Foundation
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A response's body as it comes, in chunks.
public typealias ResponseBytes = SslPinningPlatform.ResponseBytes

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
extension PinnedTransportOwner {
  /// The answer to a request, whole.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence; 60 s where it says nothing.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: `PinEvaluation` where the request was refused, `URLError` where it failed.
  /// - Important: the body is held in memory; where a server may send any amount, read
  ///   `bytes(for:)`.
  public func data(
    for request: URLRequest, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.data(for: request, within: seconds)
  }

  /// The answer's head, and its body as it comes. A slow reader slows the server down.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: as `data(for:)`; what goes wrong after the head, the sequence throws.
  public func bytes(
    for request: URLRequest, within seconds: Double? = nil
  ) async throws -> (ResponseBytes, URLResponse) {
    try await transport.bytes(for: request, within: seconds)
  }

  /// Sends `body` instead of the request's own.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - body: all of it, in memory.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: as `data(for:)`.
  public func upload(
    for request: URLRequest, from body: Data, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) {
    try await transport.upload(for: request, from: body, within: seconds)
  }

  /// Sends chunks as they come, each asked for once the last was taken. On Linux nothing is asked for before
  /// the connection was accepted; on Apple's systems the first 64 KiB are, and leave after the verdict.
  ///
  /// - Parameters:
  ///   - request: its `timeoutInterval` is the longest silence, in seconds.
  ///   - chunks: the body.
  ///   - seconds: how long everything may take, redirects and waiting included; `nil`: any time.
  /// - Throws: what `data(for:)` throws, and what the sequence throws. A 307 or 308 fails with
  ///   `URLError.requestBodyStreamExhausted`: chunks that are gone cannot be sent again.
  public func upload<Chunks: AsyncSequence & Sendable>(
    for request: URLRequest, from chunks: Chunks, within seconds: Double? = nil
  ) async throws -> (Data, URLResponse) where Chunks.Element == Data {
    try await transport.upload(for: request, from: chunks, within: seconds)
  }
}
