// A stub of Apple's Foundation: requests, answers, challenges, protocols. Only ever type-checked.

@objc open class NSURLRequest: NSObject {
  @objc public enum CachePolicy: UInt, Sendable {
    case useProtocolCachePolicy = 0
    case reloadIgnoringLocalCacheData = 1
  }
  @objc public enum NetworkServiceType: UInt, Sendable { case `default` = 0 }
}
public struct URLRequest: Hashable, Sendable {
  public typealias CachePolicy = NSURLRequest.CachePolicy
  public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
  public init(
    url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
  ) {}
  public var url: URL?
  public var httpMethod: String?
  public var httpBody: Data?
  public var httpBodyStream: InputStream? {
    get { fatalError() }
    set {}
  }
  public var allHTTPHeaderFields: [String: String]?
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}
}

@objc open class URLResponse: NSObject, @unchecked Sendable {
  open var url: URL? { fatalError() }
  open var expectedContentLength: Int64 { fatalError() }
}
@objc open class HTTPURLResponse: URLResponse, @unchecked Sendable {
  open var statusCode: Int { fatalError() }
  open var allHeaderFields: [AnyHashable: Any] { fatalError() }
  @available(macOS 10.15, iOS 13.0, tvOS 13.0, watchOS 6.0, *)
  open func value(forHTTPHeaderField field: String) -> String? { fatalError() }
}

@objc open class URLCache: NSObject, @unchecked Sendable {}
@objc open class URLCredentialStorage: NSObject, @unchecked Sendable {}
@objc open class HTTPCookieStorage: NSObject, @unchecked Sendable {}
@objc open class HTTPCookie: NSObject, @unchecked Sendable {
  @objc public enum AcceptPolicy: UInt, Sendable { case always, never, onlyFromMainDocumentDomain }
}

public let NSURLAuthenticationMethodServerTrust: String = ""
public let NSURLAuthenticationMethodClientCertificate: String = ""
public let NSURLAuthenticationMethodNTLM: String = ""
public let NSURLAuthenticationMethodNegotiate: String = ""

@objc open class URLProtectionSpace: NSObject, @unchecked Sendable {
  open var host: String { fatalError() }
  open var port: Int { fatalError() }
  open var authenticationMethod: String { fatalError() }
  open func isProxy() -> Bool { fatalError() }
  open var serverTrust: SecTrust? { fatalError() }
}
@objc open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
  open var protectionSpace: URLProtectionSpace { fatalError() }
}
@objc open class URLCredential: NSObject, @unchecked Sendable {
  public convenience init(trust: SecTrust) { fatalError() }
}

@objc public protocol URLProtocolClient: NSObjectProtocol {
  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
}
@objc open class URLProtocol: NSObject {
  open var client: (any URLProtocolClient)? { fatalError() }
  open var request: URLRequest { fatalError() }
  open class func canInit(with request: URLRequest) -> Bool { fatalError() }
  open class func canInit(with task: URLSessionTask) -> Bool { fatalError() }
  open class func canonicalRequest(for request: URLRequest) -> URLRequest { fatalError() }
  open func startLoading() {}
  open func stopLoading() {}
}

extension NSObject {
  public func setValue(_ value: Any?, forKey key: String) {}
}
