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
