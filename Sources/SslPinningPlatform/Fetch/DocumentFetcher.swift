import Foundation
import SslPinningRules

/// Fetches signed documents: under the anchors of a trust mode, never under the pins that they
/// refresh. Not through a pinned `URLSession`, and on Linux through none: a refresh must not wait for
/// the queue that all of them share.
///
/// - The host name and the chain are checked; redirects are followed to `https` only, at most five.
/// - Bounded in size and time, so neither an endless nor a dripping body holds anybody up.
/// - No cookies, no credentials, no cache. Proxies are the system's (on Linux, the environment's),
///   save for clear text, which never leaves this machine.
public struct DocumentFetcher: Sendable {
  private let validator: ChainValidator

  /// A fetcher under `trust`; ``SslPinningRules/TrustMode/pinnedKeysOnly`` has no anchors, so the system's are used.
  ///
  /// - Throws: ``TrustError`` where an anchor cannot be read.
  public init(trust: TrustMode) throws(TrustError) {
    validator = try ChainValidator(trust: trust == .pinnedKeysOnly ? .system : trust)
  }

  /// Fetches one document.
  ///
  /// - Throws: ``FetchError``.
  public func fetch(_ request: DocumentRequest) async throws(FetchError) -> FetchedDocument {
    let exchange = HTTPExchange(
      url: request.url, kind: .get,
      headers: [
        ("If-None-Match", request.etag),
        ("Cache-Control", request.bypassesCaches ? "no-cache" : nil),
      ],
      maximumBytes: request.maximumBytes, timeout: request.timeout, at: request.time)
    let answer = try await PlatformFetch.perform(exchange, validator: validator).get()
    switch answer.status {
    case 200: return .fresh(answer.body, etag: answer.etag)
    case 304 where request.etag != nil: return .unchanged
    default:
      let wait = answer.retryAfter.flatMap {
        RetryAfter.seconds($0, at: request.time?.clock ?? Int64(Date().timeIntervalSince1970))
      }
      throw .status(answer.status, retryAfter: wait.map(Double.init))
    }
  }
}
