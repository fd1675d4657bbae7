import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Whether an answer leads on, and with what request.
///
/// - 301, 302, 303, 307 and 308 with a `Location` that can be read (RFC 9110 section 15.4); anything
///   else is the answer.
/// - 303 turns everything but HEAD into GET; 301 and 302 turn POST into GET; a method that turns
///   loses its body and the fields that describe it. 307 and 308 keep both.
/// - `Authorization`, `Cookie`, `Proxy-Authorization` and `Host` do not cross to another origin.
/// - Never to clear text. At most 20 in a row.
package enum RedirectRule {
  /// Schemes without TLS: a verdict of their own.
  package static let clearText: Set<String> = ["http", "ws", "ftp"]
  /// The most redirects in a row, as in the Fetch standard.
  package static let most = 20

  package enum Decision: Equatable {
    case deliver
    case follow(URLRequest)
    case refuse(PinEvaluation)
    case fail(URLError.Code)
  }

  /// - Parameters:
  ///   - followed: how many redirects led to this answer.
  ///   - canRepeatBody: whether the request's body can be sent a second time.
  package static func decide(
    status: Int, location: String?, after request: URLRequest, followed: Int, canRepeatBody: Bool
  ) -> Decision {
    guard [301, 302, 303, 307, 308].contains(status), let location, let old = request.url,
      let target = resolve(location, against: old)
    else { return .deliver }
    let scheme = target.scheme?.lowercased() ?? ""
    guard scheme == "https" else {
      guard clearText.contains(scheme) else { return .fail(.unsupportedURL) }
      return .refuse(
        PinEvaluation(
          host: target.host ?? "", outcome: .clearText(scheme: scheme), decision: .refuse))
    }
    guard followed < most else { return .fail(.httpTooManyRedirects) }
    var next = request
    next.url = target
    let method = request.httpMethod ?? "GET"
    if (status == 303 && method != "GET" && method != "HEAD")
      || ([301, 302].contains(status) && method == "POST")
    {
      next.httpMethod = "GET"
      next.httpBody = nil
      next.httpBodyStream = nil
      for name in ["Content-Type", "Content-Encoding", "Content-Language", "Content-Location"] {
        next.setValue(nil, forHTTPHeaderField: name)
      }
    } else if !canRepeatBody {
      return .fail(.requestBodyStreamExhausted)
    }
    if !isSameOrigin(old, target) {
      // Who redirects does not choose as whom the client signs in elsewhere.
      if target.user != nil || target.password != nil,
        var parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
      {
        (parts.user, parts.password) = (nil, nil)
        if let url = parts.url { next.url = url }
      }
      for name in ["Authorization", "Cookie", "Proxy-Authorization", "Host"] {
        // A request may have one field in several spellings, and this takes one of them out.
        let count = (next.allHTTPHeaderFields ?? [:]).keys
          .count { $0.lowercased() == name.lowercased() }
        for _ in 0..<count { next.setValue(nil, forHTTPHeaderField: name) }
      }
    }
    return .follow(next)
  }

  private static func resolve(_ location: String, against old: URL) -> URL? {
    guard let target = URL(string: location, relativeTo: old)?.absoluteURL else { return nil }
    // Where the new one has none, the old fragment stays (RFC 9110 section 10.2.2); it is never sent.
    guard target.fragment == nil, let fragment = old.fragment,
      var parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
    else { return target }
    parts.fragment = fragment
    return parts.url ?? target
  }

  private static func isSameOrigin(_ a: URL, _ b: URL) -> Bool {
    a.scheme?.lowercased() == b.scheme?.lowercased() && a.host?.lowercased() == b.host?.lowercased()
      && (a.port ?? 443) == (b.port ?? 443)
  }
}

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
  /// An error that names the URL and says more in `text` or, without one, in words of ours where Foundation on Linux has a number.
  static func failing(_ code: URLError.Code, _ url: URL?, _ text: String? = nil) -> URLError {
    var details: [String: Any] = [:]
    details[NSURLErrorFailingURLErrorKey] = url
    details[NSLocalizedDescriptionKey] = text ?? words(for: code)
    return URLError(code, userInfo: details)
  }

  private static func words(for code: URLError.Code) -> String? {
    switch code {
    case .unsupportedURL:
      "only https is asked for, also behind a redirect; hint: ask for another URL over a session of your own"
    case .httpTooManyRedirects:
      "more than \(RedirectRule.most) redirects in a row; hint: does the server lead in a circle, "
        + "or wait for a cookie or a password?"
    case .requestBodyStreamExhausted:
      "a redirect asks again for a body that came in pieces; hint: give it as Data, or ask for the last URL"
    case .resourceUnavailable:
      "memory, threads or file descriptors are short; hint: raise the limits of the process, "
        + "or make fewer requests at a time"
    default: nil
    }
  }
}

/// What may stand in a request's head. A line break would begin a field, or a request, of somebody
/// else's making.
package enum HeaderRule {
  /// What cannot be sent as it stands of a request's head; `nil`: all of it can.
  static func fault(method: String, headers: [String: String]) -> String? {
    for (name, value) in headers where !isSendable(name: name, value: value) {
      return "the header field \"\(name)\" cannot be sent"
    }
    return isToken(method) ? nil : "the method cannot be sent"
  }

  /// A field that can be sent as it stands (RFC 9110 section 5).
  package static func isSendable(name: String, value: String) -> Bool {
    isToken(name) && !value.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7f }
  }

  /// A token (RFC 9110 section 5.6.2).
  package static func isToken(_ text: String) -> Bool { isToken(text.utf8) }

  /// Of bytes: who reads another's text as a `String` to look at it may take seconds for its marks.
  static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
    !bytes.isEmpty && bytes.allSatisfy(isTokenByte)
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
