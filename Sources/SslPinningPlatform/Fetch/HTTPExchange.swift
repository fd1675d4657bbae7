import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One request outside of all sessions, as each platform's ``PlatformFetch`` carries it out.
package struct HTTPExchange: Sendable {
  /// What is asked.
  enum Kind: Hashable, Sendable {
    /// GET. Redirects are followed to `https` only, at most five; a longer answer is a failure.
    case get
    /// GET of what only this server may say, with a token that only it may see: a redirect is an answer
    /// like any other.
    case getHere
    /// POST of JSON. A redirect is an answer like any other: what the app tells, it tells the server
    /// it named. Of the answer only its head counts, so a
    /// body that is too long or breaks off changes nothing.
    case post([UInt8])
  }

  let url: RegistryURL
  let kind: Kind
  /// Header fields; one whose value has a line break is left out.
  let headers: [(name: String, value: String)]
  /// The most bytes that the answer's body may have.
  let maximumBytes: Int
  /// Seconds for the whole exchange.
  let timeout: Double
  /// The times that the dates of the server's chain are held to (`RegistryDates`); `nil` means the
  /// system's clock.
  let time: TrustTime?

  init(
    url: RegistryURL, kind: Kind, headers: [(String, String?)], maximumBytes: Int, timeout: Double,
    at time: TrustTime? = nil
  ) {
    self.url = url
    self.kind = kind
    let common: [(String, String?)] = [
      ("Accept", "application/json"), ("User-Agent", "ssl-pinning"),
    ]
    self.headers = (common + headers).compactMap { name, value in
      guard let value, Self.isSendable(value) else { return nil }
      return (name, value)
    }
    self.maximumBytes = maximumBytes
    self.timeout = timeout
    self.time = time
  }

  /// Whether a header can have this value: a line break would begin one of somebody else's making.
  static func isSendable(_ value: String) -> Bool {
    !value.utf8.contains { $0 < 0x20 || $0 == 0x7f }
  }
}

/// What a server answered.
package struct HTTPAnswer: Hashable, Sendable {
  var status: Int
  /// The entity tag, if it is one that can be sent back: another names nothing, and a later 304 would answer no
  /// question.
  var etag: String? {
    didSet { etag = Self.sendable(etag) }
  }
  var retryAfter: String?
  var cacheControl: String?
  var body: [UInt8]

  init(
    status: Int, etag: String? = nil, retryAfter: String? = nil, cacheControl: String? = nil,
    body: [UInt8]
  ) {
    self.status = status
    self.etag = Self.sendable(etag)
    self.retryAfter = retryAfter
    self.cacheControl = cacheControl
    self.body = body
  }

  private static func sendable(_ tag: String?) -> String? {
    guard let tag, !tag.isEmpty, HTTPExchange.isSendable(tag) else { return nil }
    return tag
  }
}

/// An exchange as a `URLSession` of Apple's systems is asked for it.
extension HTTPExchange {
  /// Seconds that the session is given, within what it takes.
  var sessionTimeout: Double { max(0.001, min(timeout, Double(Int32.max) / 1000)) }

  /// A configuration that keeps nothing and sends nothing of another exchange: no cookies, no cache, no
  /// credentials. Clear text stays on this machine: no proxy sees it.
  var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpShouldSetCookies = false
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    if url.isClearText { configuration.connectionProxyDictionary = [:] }
    configuration.timeoutIntervalForRequest = sessionTimeout
    configuration.timeoutIntervalForResource = sessionTimeout
    return configuration
  }

  /// The request.
  func request(to url: URL) -> URLRequest {
    var request = URLRequest(
      url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: sessionTimeout)
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    if case .post(let bytes) = kind {
      request.httpMethod = "POST"
      request.httpBody = Data(bytes)
    }
    return request
  }
}

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
    validator = try ChainValidator(anchorsOf: trust)
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
    self.init(validator: try ChainValidator(anchorsOf: trust))
  }

  /// A poster under anchors that were read already.
  package init(validator: ChainValidator) { self.validator = validator }

  /// Posts JSON and waits for the answer, whatever it is.
  ///
  /// - Parameters:
  ///   - headers: more header fields.
  ///   - timeout: seconds for the whole exchange.
  ///   - time: the times that the dates of the collector's chain are held to; `nil` means the system's clock.
  /// - Throws: ``FetchError/unreachable(_:)``.
  package func post(
    _ json: [UInt8], to url: RegistryURL, headers: [(name: String, value: String)] = [],
    timeout: Double, at time: TrustTime? = nil
  ) async throws(FetchError) -> Answer {
    let exchange = HTTPExchange(
      url: url, kind: .post(json),
      headers: [("Content-Type", "application/json")] + headers.map { ($0.name, $0.value) },
      maximumBytes: 65_536, timeout: timeout, at: time)
    let answer = try await PlatformFetch.perform(exchange, validator: validator).get()
    return Answer(status: answer.status, retryAfter: answer.retryAfter)
  }
}
