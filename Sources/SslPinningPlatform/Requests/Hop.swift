import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A request without a session on its way through redirects: what is sent next.
struct Hop: Sendable {
  /// What is sent.
  private(set) var request: URLRequest
  /// A body instead of the request's own.
  private(set) var body: RequestBody?
  /// How many redirects led here.
  private(set) var followed = 0

  init(_ request: URLRequest, body: RequestBody? = nil) {
    self.request = request
    self.body = body
  }

  /// The body as it comes, if it comes in chunks.
  var feed: BodyFeed? {
    guard case .chunks(let source) = body else { return nil }
    return BodyFeed { feed in try await source { await feed.put($0) } }
  }

  /// Whether the body can be sent a second time: chunks that are gone cannot.
  private var canRepeatBody: Bool {
    if case .chunks = body { return false }
    return request.httpBodyStream == nil
  }

  /// What the head of an answer asks for.
  func decide(_ response: HTTPURLResponse) -> RedirectRule.Decision {
    RedirectRule.decide(
      status: response.statusCode, location: response.value(forHTTPHeaderField: "Location"),
      after: request, followed: followed, canRepeatBody: canRepeatBody)
  }

  /// Goes on to the request that ``decide(_:)`` led to.
  mutating func follow(_ next: URLRequest) {
    // A method that turned has lost its body.
    if (next.httpMethod ?? "GET") != (request.httpMethod ?? "GET") { body = nil }
    request = next
    followed += 1
  }

  /// The host that the request goes to, before anything of it leaves.
  ///
  /// - Throws: ``SslPinningRules/PinEvaluation`` for clear text and for a host that is no name; `URLError` for what cannot
  ///   be sent.
  func host() throws -> HostName {
    guard let url = request.url else { throw URLError(.badURL) }
    if let fault = HeaderRule.fault(
      method: request.httpMethod ?? "GET", headers: request.allHTTPHeaderFields ?? [:])
    {
      throw URLError.failing(.badURL, url, fault)
    }
    let scheme = url.scheme?.lowercased() ?? ""
    guard scheme == "https" else {
      guard RedirectRule.clearText.contains(scheme) else {
        throw URLError.failing(.unsupportedURL, url)
      }
      throw PinEvaluation(
        host: url.host ?? "", outcome: .clearText(scheme: scheme), decision: .refuse)
    }
    guard let spelling = url.host, !spelling.isEmpty else {
      throw URLError.failing(
        .badURL, url, "the URL names no host that can be read; hint: https://host/path")
    }
    do throws(HostNameError) { return try HostName(spelling) } catch {
      throw PinEvaluation(host: spelling, outcome: .unreadableHost(error), decision: .refuse)
    }
  }
}

extension URLError {
  /// An error that names the URL and, where there is one, says more in `text`.
  static func failing(_ code: URLError.Code, _ url: URL?, _ text: String? = nil) -> URLError {
    var details: [String: Any] = [:]
    details[NSURLErrorFailingURLErrorKey] = url
    details[NSLocalizedDescriptionKey] = text
    return URLError(code, userInfo: details)
  }
}
