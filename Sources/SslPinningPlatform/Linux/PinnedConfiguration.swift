#if os(Linux)
  import Foundation
  import FoundationNetworking

  /// A configuration whose two escapes are closed for good: a cache that an unpinned session may have
  /// filled, and protocol classes that would carry the request past the pins, those included that an
  /// app registers for the whole process.
  ///
  /// `URLSession` copies its configuration when it is made and hands that copy out again; as the
  /// copy is of this type too, writing to either property later does nothing.
  ///
  /// The pins are the session's, not the configuration's: a session that an app makes of what it was handed
  /// out would look pinned and be an ordinary one. Such a one refuses everything.
  final class PinnedConfiguration: URLSessionConfiguration, @unchecked Sendable {
    /// Foundation's own HTTP transport, the one that runs on libcurl.
    static let native: [AnyClass] =
      (URLSessionConfiguration.default.protocolClasses ?? []).filter {
        String(reflecting: $0) == "FoundationNetworking._HTTPURLProtocol"
      }

    override var urlCache: URLCache? {
      get { nil }
      set {}
    }

    /// How many copies lie between this one and the one that a pinned session was made of.
    private var copies = 0

    override var protocolClasses: [AnyClass]? {
      // Whatever no class of these takes, Foundation offers to the classes registered for the process.
      get { copies > 1 ? [UnpinnedCopyProtocol.self] : Self.native + [OtherSchemesProtocol.self] }
      set {}
    }

    override func copy(with zone: NSZone?) -> Any {
      let copy = Self.pinning(self)
      copy.copies = copies + 1
      return copy
    }

    /// The same settings as `other`, with the escapes closed.
    static func pinning(_ other: URLSessionConfiguration) -> PinnedConfiguration {
      // Through the protocol, because what is deprecated here cannot be done without: there is no
      // other initializer that a subclass could call.
      (PinnedConfiguration.self as any SettingsCopying.Type).copying(other)
    }
  }

  private protocol SettingsCopying {
    static func copying(_ other: URLSessionConfiguration) -> PinnedConfiguration
  }

  extension PinnedConfiguration: SettingsCopying {
    @available(*, deprecated, message: "call pinning(_:)")
    fileprivate static func copying(_ other: URLSessionConfiguration) -> PinnedConfiguration {
      let copy = PinnedConfiguration()
      copy.requestCachePolicy = other.requestCachePolicy
      copy.timeoutIntervalForRequest = other.timeoutIntervalForRequest
      copy.timeoutIntervalForResource = other.timeoutIntervalForResource
      copy.networkServiceType = other.networkServiceType
      copy.allowsCellularAccess = other.allowsCellularAccess
      copy.isDiscretionary = other.isDiscretionary
      copy.connectionProxyDictionary = other.connectionProxyDictionary
      copy.httpShouldUsePipelining = other.httpShouldUsePipelining
      copy.httpShouldSetCookies = other.httpShouldSetCookies
      copy.httpCookieAcceptPolicy = other.httpCookieAcceptPolicy
      copy.httpAdditionalHeaders = other.httpAdditionalHeaders
      copy.httpMaximumConnectionsPerHost = other.httpMaximumConnectionsPerHost
      copy.httpCookieStorage = other.httpCookieStorage
      copy.urlCredentialStorage = other.urlCredentialStorage
      return copy
    }
  }
#endif
