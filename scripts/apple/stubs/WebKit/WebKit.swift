// A stub of Apple's WebKit, as far as the documentation's listings use it. Only ever type-checked.

import Foundation

@available(tvOS, unavailable)
@available(watchOS, unavailable)
@objc @MainActor public protocol WKNavigationDelegate: NSObjectProtocol {
  @objc optional func webView(
    _ webView: WKWebView, didReceive challenge: URLAuthenticationChallenge,
    completionHandler:
      @escaping @MainActor @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
@objc @MainActor open class WKWebsiteDataStore: NSObject {
  open class func nonPersistent() -> WKWebsiteDataStore { fatalError() }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
@objc @MainActor open class WKWebViewConfiguration: NSObject {
  open var websiteDataStore: WKWebsiteDataStore {
    get { fatalError() }
    set {}
  }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
@objc @MainActor open class WKWebView: NSObject {
  public init(frame: CGRect, configuration: WKWebViewConfiguration) { fatalError() }
  open weak var navigationDelegate: (any WKNavigationDelegate)?
}
