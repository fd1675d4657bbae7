import SslPinningRules

/// Hands reports to their collectors: under the anchors of a trust mode, never under pins. A pin that
/// fails must be reported, even where it is the collector's own.
///
/// - The host name and the chain are checked. No redirects, cookies, credentials or cache.
/// - Bounded in time; of the answer only its head counts, and a longer body is cut off.
/// - No judge hears of these connections, so no report is ever made about a report.
package struct ReportPoster: Sendable {
  /// What a collector answered.
  package struct Answer: Hashable, Sendable {
    /// The HTTP status.
    package let status: Int
    /// The `Retry-After` field as it came.
    package let retryAfter: String?
  }

  private let validator: ChainValidator

  /// A poster under `trust`; ``TrustMode/pinnedKeysOnly`` has no anchors, so the system's are used.
  ///
  /// - Throws: ``TrustError`` where an anchor cannot be read.
  package init(trust: TrustMode) throws(TrustError) {
    validator = try ChainValidator(trust: trust == .pinnedKeysOnly ? .system : trust)
  }

  /// Posts JSON and waits for the answer, whatever it is.
  ///
  /// - Parameter timeout: seconds for the whole exchange.
  /// - Throws: ``FetchError/unreachable(_:)``.
  package func post(
    _ json: [UInt8], to url: RegistryURL, timeout: Double
  ) async throws(FetchError) -> Answer {
    let exchange = HTTPExchange(
      url: url, kind: .post(json), headers: [("Content-Type", "application/json")],
      maximumBytes: 65_536, timeout: timeout)
    let answer = try await PlatformFetch.perform(exchange, validator: validator).get()
    return Answer(status: answer.status, retryAfter: answer.retryAfter)
  }
}
