#if canImport(Security)
  import Foundation

  /// The configuration of a pinned session: a fresh ephemeral one with the app's settings.
  ///
  /// - Ephemeral, so that it shares no cache and no TLS sessions with sessions that nobody judged; a
  ///   cache in the app's configuration is left out, because an unpinned session may have filled it.
  /// - The app's protocol classes are left out: they would carry requests past the pins. Ours refuses
  ///   clear text.
  /// - No early data: it leaves before the server is known. The property is set by name, because
  ///   older SDKs do not declare it.
  enum PinnedConfiguration {
    /// The same settings as `other`, with the escapes closed.
    static func pinning(_ other: URLSessionConfiguration) -> URLSessionConfiguration {
      let copy = URLSessionConfiguration.ephemeral
      copy.requestCachePolicy = .reloadIgnoringLocalCacheData
      copy.timeoutIntervalForRequest = other.timeoutIntervalForRequest
      copy.timeoutIntervalForResource = other.timeoutIntervalForResource
      copy.networkServiceType = other.networkServiceType
      copy.allowsCellularAccess = other.allowsCellularAccess
      copy.allowsExpensiveNetworkAccess = other.allowsExpensiveNetworkAccess
      copy.allowsConstrainedNetworkAccess = other.allowsConstrainedNetworkAccess
      copy.waitsForConnectivity = other.waitsForConnectivity
      copy.isDiscretionary = other.isDiscretionary
      copy.httpShouldUsePipelining = other.httpShouldUsePipelining
      copy.httpShouldSetCookies = other.httpShouldSetCookies
      copy.httpCookieAcceptPolicy = other.httpCookieAcceptPolicy
      copy.httpAdditionalHeaders = other.httpAdditionalHeaders
      copy.httpMaximumConnectionsPerHost = other.httpMaximumConnectionsPerHost
      copy.httpCookieStorage = other.httpCookieStorage
      copy.urlCredentialStorage = other.urlCredentialStorage
      copy.connectionProxyDictionary = other.connectionProxyDictionary
      copy.tlsMinimumSupportedProtocolVersion = other.tlsMinimumSupportedProtocolVersion
      copy.tlsMaximumSupportedProtocolVersion = other.tlsMaximumSupportedProtocolVersion
      copy.urlCache = nil
      copy.protocolClasses = [ClearTextProtocol.self]
      if copy.responds(to: NSSelectorFromString("setEnablesEarlyData:")) {
        copy.setValue(false, forKey: "enablesEarlyData")
      }
      return copy
    }
  }
#endif
