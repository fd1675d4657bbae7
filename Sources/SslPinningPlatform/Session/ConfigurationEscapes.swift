import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A copy of an app's configuration with the ways past the pins closed. All else is carried over, settings that
/// this version has never heard of included: proxies and relays, DNSSEC, multipath, the limits on dear networks.
///
/// - No cache: an unpinned session may have filled the app's.
/// - The app's protocol classes are left out: they would carry requests past the pins.
///
/// On Apple's systems alone; on Linux a configuration is a class of ours.
package enum ConfigurationEscapes {
  /// - Parameters:
  ///   - refusing: our classes that refuse requests, asked before all others.
  ///   - fresh: the classes of a fresh configuration, each with the file that its code lies in. The system's own
  ///     stand behind ours, or nobody would load `https` if the list is all that is asked; one that a
  ///     debugging tool has put there is left out.
  /// - Returns: `nil` if the system makes no copy.
  package static func closed(
    _ other: URLSessionConfiguration, refusing: [AnyClass],
    fresh: [(type: AnyClass, image: String?)]
  ) -> URLSessionConfiguration? {
    guard let copy = other.copy() as? URLSessionConfiguration else { return nil }
    copy.urlCache = nil
    copy.requestCachePolicy = .reloadIgnoringLocalCacheData
    let kept = fresh.filter { isSystem($0.image) && !handsOver($0.type) }
    copy.protocolClasses = refusing + kept.map(\.type)
    return copy
  }

  /// Whether a class hands requests to another app: on managed devices the system asks one for single sign-on
  /// (`_NSURLAppSSOProtocol`) before the network, and what signs in there connects without our pins. Where a list
  /// lacks it, it is asked after the system's own for `https`, so about none. No document names it; both were seen
  /// in disassembly.
  private static func handsOver(_ type: AnyClass) -> Bool {
    String(describing: type).range(of: "SSO") != nil
  }

  /// Whether a file of code is the system's: below `/System/Library`, in a simulator's copy of it, too.
  private static func isSystem(_ image: String?) -> Bool {
    let folders = (image ?? "").split(separator: "/")
    return zip(folders, folders.dropFirst()).contains { $0 == "System" && $1 == "Library" }
  }
}

/// Fails every request that it takes, with the cause, before anything is dialled.
///
/// On Apple's systems a second lock: no document says that a session asks such a class before its own loaders,
/// WebSockets and stream tasks never ask one, and watchOS hardly does. The first is the session's delegate.
class FailingProtocol: URLProtocol {
  /// What a request ends with.
  class var failure: (code: URLError.Code, text: String) { (.unsupportedURL, "refused") }

  override class func canInit(with request: URLRequest) -> Bool { true }
  override class func canInit(with task: URLSessionTask) -> Bool { true }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}

  override func startLoading() {
    let failure = type(of: self).failure
    var details: [String: Any] = [NSLocalizedDescriptionKey: failure.text]
    details[NSURLErrorFailingURLErrorKey] = request.url
    client?.urlProtocol(self, didFailWithError: URLError(failure.code, userInfo: details))
  }
}

/// Takes the requests of a pinned session of Apple's systems that would go out in clear text, first or redirected.
final class ClearTextProtocol: FailingProtocol {
  override class var failure: (code: URLError.Code, text: String) {
    (.unsupportedURL, "only https goes over a pinned session")
  }

  override class func canInit(with request: URLRequest) -> Bool { !TaskRule.allows(request.url) }
  override class func canInit(with task: URLSessionTask) -> Bool {
    !TaskRule.allows(task.currentRequest?.url)
  }
}
