// A stub of Apple's WebKit, as far as the documentation's listings use it. Only ever type-checked.

import Foundation

public struct CGRect: Sendable {
  public static let zero = CGRect()
}

@objc @MainActor public protocol WKNavigationDelegate: NSObjectProtocol {
  @objc optional func webView(
    _ webView: WKWebView, didReceive challenge: URLAuthenticationChallenge,
    completionHandler:
      @escaping @MainActor @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}

@objc @MainActor open class WKWebsiteDataStore: NSObject {
  open class func nonPersistent() -> WKWebsiteDataStore { fatalError() }
}

@objc @MainActor open class WKWebViewConfiguration: NSObject {
  open var websiteDataStore: WKWebsiteDataStore {
    get { fatalError() }
    set {}
  }
}

@objc @MainActor open class WKWebView: NSObject {
  public init(frame: CGRect, configuration: WKWebViewConfiguration) { fatalError() }
  open weak var navigationDelegate: (any WKNavigationDelegate)?
}
