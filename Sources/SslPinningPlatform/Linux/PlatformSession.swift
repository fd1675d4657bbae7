#if os(Linux)
  import CSslPinningCurl
  import CSslPinningOpenSSL
  import CSslPinningShims
  import Foundation
  import FoundationNetworking
  import SslPinningRules

  /// Makes pinned `URLSession`s on Linux: Foundation's own, on its own libcurl, with the hook on
  /// its multi handle.
  enum PlatformSession {
    static let mayResumeOthers = false

    static func make(
      for transport: PinnedTransport, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      do throws(PlatformError) {
        try selfTest()
        let hook = SessionHook(
          transport: transport, requestTimeout: configuration.timeoutIntervalForRequest,
          cookieStorage: configuration.httpShouldSetCookies
            ? PinnedConfiguration.jar(for: configuration) : nil)
        return try pinned(
          by: hook, configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
      } catch {
        return RefusingProtocol.session(
          cause: error, configuration: configuration, delegate: delegate,
          delegateQueue: delegateQueue)
      }
    }

    /// Whether libraries and linkage are what pinning stands on; asked once for each process.
    static func selfTest() throws(PlatformError) { try verdict.get() }

    private static let verdict: Result<Void, PlatformError> = {
      do throws(PlatformError) { try bindHook() } catch { return .failure(error) }
      if let option = pp_hook_missing_option() {
        return .failure(
          .cannotPin(
            reason: "libcurl knows no \(String(cString: option)); hint: version 7.80 or newer"))
      }
      guard let backend = pp_curl_tls_backend() else {
        return .failure(.cannotPin(reason: "libcurl has no TLS"))
      }
      // The hook reads libcurl's SSL objects with the OpenSSL that is linked here. Of two different
      // libraries the texts differ; two copies of one version have one layout.
      let name = String(cString: backend)
      guard let version = OpenSSL_version(OPENSSL_VERSION_STRING),
        name == "OpenSSL/" + String(cString: version)
      else {
        return .failure(
          .cannotPin(
            reason: "libcurl's TLS is \(name); hint: install the OpenSSL flavour, libcurl4"))
      }
      guard Digest.isAvailable else {
        return .failure(.cannotPin(reason: "OpenSSL has no SHA-2"))
      }
      guard PinnedConfiguration.native.count == 1 else {
        return .failure(.cannotPin(reason: "Foundation's HTTP transport has another name"))
      }
      return .success(())
    }()

    /// Has Foundation call the hook; asked again for every session, since another thread's first call
    /// into libcurl may have turned an address back.
    private static func bindHook() throws(PlatformError) {
      // Where the class lies, there lies the code: a library's image, or the program's own.
      let inside = unsafeBitCast(URLSession.self as AnyClass, to: UnsafeRawPointer.self)
      var reason = [CChar](repeating: 0, count: Int(PP_MESSAGE_SIZE))
      guard pp_hook_bind(inside, &reason) else {
        throw .cannotPin(
          reason: String(
            decoding: reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
      }
    }

    static func pinned(
      by hook: SessionHook, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) throws(PlatformError) -> URLSession {
      try bindHook()
      let pinned = PinnedConfiguration.pinning(configuration)
      pp_capture_begin()
      let session = URLSession(
        configuration: pinned, delegate: delegate, delegateQueue: delegateQueue)
      var isShort = false
      guard let multi = pp_capture_end(&isShort) else {
        throw .cannotPin(
          reason: isShort
            ? "no file descriptor or memory is left; hint: raise the limit (ulimit -n), and make a new session"
            : "a URLSession was made without exactly one libcurl handle")
      }
      let validator = hook.transport.validator
      var options = HookCallbacks.options(
        for: hook, store: validator.storePointer, checkHost: validator.trust != .pinnedKeysOnly)
      guard pp_session_adopt(multi, &options) != 0 else {
        options.release(options.context)
        throw .cannotPin(reason: "out of memory")
      }
      return session
    }
  }

  /// A configuration whose two escapes are closed for good: a cache that an unpinned session may have
  /// filled, and protocol classes that would carry the request past the pins, those included that an
  /// app registers for the whole process.
  ///
  /// Nor does it use the jar of cookies that every ordinary session fills by itself: see ``jar(for:)``.
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

    /// The app's jar, or in place of the process's shared one that of its pinned sessions, which is kept on the disk
    /// just the same: what anybody could set in clear text is not sent to pinned hosts.
    static func jar(for other: URLSessionConfiguration) -> HTTPCookieStorage? {
      other.httpCookieStorage === HTTPCookieStorage.shared
        ? HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "ssl-pinning")
        : other.httpCookieStorage
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
      copy.httpCookieStorage = PinnedConfiguration.jar(for: other)
      copy.urlCredentialStorage = other.urlCredentialStorage
      return copy
    }
  }
#endif
