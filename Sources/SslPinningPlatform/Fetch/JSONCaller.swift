import SslPinningRules

/// Calls an API with a token: under the anchors of a trust mode, in clear text to this machine alone.
///
/// - The host name and the chain are checked. No redirects, cookies or cache.
/// - Bounded in time and size.
package struct JSONCaller: Sendable {
  /// What was answered, whatever it is.
  package struct Answer: Hashable, Sendable {
    /// The HTTP status.
    package let status: Int
    /// The body as it came.
    package let body: [UInt8]
  }

  private let validator: ChainValidator

  /// The most bytes of an answer.
  private static let limit = 16 << 20

  /// A caller under `trust`; ``TrustMode/pinnedKeysOnly`` has no anchors, so the system's are used.
  ///
  /// - Throws: ``TrustError`` where an anchor cannot be read.
  package init(trust: TrustMode) throws(TrustError) {
    validator = try ChainValidator(trust: trust == .pinnedKeysOnly ? .system : trust)
  }

  /// Makes one call.
  ///
  /// - Parameters:
  ///   - bearer: the token of the Authorization header.
  ///   - json: the body of a POST; without one it is a GET.
  ///   - timeout: seconds for the whole exchange.
  /// - Throws: ``FetchError``.
  package func call(
    _ url: RegistryURL, bearer: String, posting json: [UInt8]? = nil, timeout: Double
  ) async throws(FetchError) -> Answer {
    let exchange = HTTPExchange(
      url: url, kind: json.map { .post($0) } ?? .getHere,
      headers: [
        ("Authorization", "Bearer \(bearer)"),
        ("Content-Type", json == nil ? nil : "application/json"),
      ], maximumBytes: Self.limit, timeout: timeout)
    let answer = try await PlatformFetch.perform(exchange, validator: validator).get()
    return Answer(status: answer.status, body: answer.body)
  }
}
