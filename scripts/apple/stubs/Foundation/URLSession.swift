// A stub of Apple's Foundation: URL sessions. Only ever type-checked.
// The delegate protocols are `@objc` with optional members, as Apple declares them.

@objc open class URLSession: NSObject, @unchecked Sendable {
  @objc public enum AuthChallengeDisposition: Int, Sendable {
    case useCredential = 0
    case performDefaultHandling = 1
    case cancelAuthenticationChallenge = 2
    case rejectProtectionSpace = 3
  }
  @objc public enum ResponseDisposition: Int, Sendable {
    case cancel = 0
    case allow = 1
    case becomeDownload = 2
    case becomeStream = 3
  }

  open class var shared: URLSession { fatalError() }
  public convenience init(configuration: URLSessionConfiguration) { fatalError() }
  public convenience init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
    delegateQueue queue: OperationQueue?
  ) { fatalError() }
  open var configuration: URLSessionConfiguration { fatalError() }
  open var delegate: (any URLSessionDelegate)? { fatalError() }
  open func finishTasksAndInvalidate() {}
  open func invalidateAndCancel() {}
  open func flush(completionHandler: @escaping @Sendable () -> Void) {}
  open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {}
  open func dataTask(with request: URLRequest) -> URLSessionDataTask { fatalError() }
  @available(macOS 12.0, iOS 15.0, watchOS 8.0, tvOS 15.0, *)
  public func data(
    from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) { fatalError() }
}

@objc open class URLSessionTask: NSObject, @unchecked Sendable {
  @objc public enum State: Int, Sendable { case running, suspended, canceling, completed }
  open var taskIdentifier: Int { fatalError() }
  open var originalRequest: URLRequest? { fatalError() }
  open var currentRequest: URLRequest? { fatalError() }
  open var response: URLResponse? { fatalError() }
  open var error: (any Error)? { fatalError() }
  open var state: State { fatalError() }
  @available(macOS 12.0, iOS 15.0, watchOS 8.0, tvOS 15.0, *)
  open var delegate: (any URLSessionTaskDelegate)? {
    get { fatalError() }
    set {}
  }
  open func cancel() {}
  open func resume() {}
  open func suspend() {}
}
@objc open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
@objc open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {}
@objc open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {}

@objc open class URLSessionConfiguration: NSObject, @unchecked Sendable {
  open class var `default`: URLSessionConfiguration { fatalError() }
  open class var ephemeral: URLSessionConfiguration { fatalError() }
  open var identifier: String? { fatalError() }
  open var requestCachePolicy: NSURLRequest.CachePolicy {
    get { fatalError() }
    set {}
  }
  open var networkServiceType: NSURLRequest.NetworkServiceType {
    get { fatalError() }
    set {}
  }
  open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
    get { fatalError() }
    set {}
  }
  open var httpCookieStorage: HTTPCookieStorage? {
    get { fatalError() }
    set {}
  }
  open var urlCredentialStorage: URLCredentialStorage? {
    get { fatalError() }
    set {}
  }
  open var urlCache: URLCache? {
    get { fatalError() }
    set {}
  }
  open var timeoutIntervalForRequest: TimeInterval {
    get { fatalError() }
    set {}
  }
  open var timeoutIntervalForResource: TimeInterval {
    get { fatalError() }
    set {}
  }
  open var allowsCellularAccess: Bool {
    get { fatalError() }
    set {}
  }
  open var allowsExpensiveNetworkAccess: Bool {
    get { fatalError() }
    set {}
  }
  open var allowsConstrainedNetworkAccess: Bool {
    get { fatalError() }
    set {}
  }
  open var waitsForConnectivity: Bool {
    get { fatalError() }
    set {}
  }
  open var isDiscretionary: Bool {
    get { fatalError() }
    set {}
  }
  open var httpShouldUsePipelining: Bool {
    get { fatalError() }
    set {}
  }
  open var httpShouldSetCookies: Bool {
    get { fatalError() }
    set {}
  }
  open var httpMaximumConnectionsPerHost: Int {
    get { fatalError() }
    set {}
  }
  open var shouldUseExtendedBackgroundIdleMode: Bool {
    get { fatalError() }
    set {}
  }
  open var httpAdditionalHeaders: [AnyHashable: Any]? {
    get { fatalError() }
    set {}
  }
  open var connectionProxyDictionary: [AnyHashable: Any]? {
    get { fatalError() }
    set {}
  }
  open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
    get { fatalError() }
    set {}
  }
  open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
    get { fatalError() }
    set {}
  }
  open var protocolClasses: [AnyClass]? {
    get { fatalError() }
    set {}
  }
  @available(macOS 15.4, iOS 18.4, watchOS 11.4, tvOS 18.4, visionOS 2.4, *)
  open var usesClassicLoadingMode: Bool {
    get { fatalError() }
    set {}
  }
  @available(macOS 26.0, iOS 26.0, watchOS 26.0, tvOS 26.0, visionOS 26.0, *)
  open var enablesEarlyData: Bool {
    get { fatalError() }
    set {}
  }
}

@objc open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
  open var request: URLRequest { fatalError() }
  open var response: URLResponse? { fatalError() }
  open var requestStartDate: Date? { fatalError() }
  open var secureConnectionStartDate: Date? { fatalError() }
  open var secureConnectionEndDate: Date? { fatalError() }
  open var isProxyConnection: Bool { fatalError() }
  open var isReusedConnection: Bool { fatalError() }
  open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { fatalError() }
}
@objc open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
  @objc public enum ResourceFetchType: Int, Sendable {
    case unknown = 0
    case networkLoad = 1
    case serverPush = 2
    case localCache = 3
  }
  open var transactionMetrics: [URLSessionTaskTransactionMetrics] { fatalError() }
}

@objc public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
  @objc optional func urlSession(
    _ session: URLSession, didBecomeInvalidWithError error: (any Error)?)
  @objc optional func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (
      URLSession.AuthChallengeDisposition, URLCredential?
    ) -> Void)
  @available(macOS 11.0, iOS 7.0, tvOS 9.0, watchOS 2.0, *)
  @objc optional func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

@objc public protocol URLSessionTaskDelegate: URLSessionDelegate {
  @available(macOS 13.0, iOS 16.0, watchOS 9.0, tvOS 16.0, *)
  @objc optional func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)
  @objc optional func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)
  @objc optional func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (
      URLSession.AuthChallengeDisposition, URLCredential?
    ) -> Void)
  @objc optional func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
  @objc optional func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

@objc public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
  @objc optional func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)
  @objc optional func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}
