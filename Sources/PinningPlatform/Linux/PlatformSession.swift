#if os(Linux)
  import CCurl
  import COpenSSL
  import CPlatformShims
  import Foundation
  import FoundationNetworking
  import Pinning

  /// Makes pinned `URLSession`s on Linux: Foundation's own, on its own libcurl, with the hook on
  /// its multi handle.
  enum PlatformSession {
    /// Sessions keep their own state, in the hook.
    struct State: Sendable {}

    static func make(
      for transport: PinnedTransport, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      do throws(PlatformError) {
        try selfTest()
        return try pinned(
          for: transport, configuration: configuration, delegate: delegate,
          delegateQueue: delegateQueue)
      } catch {
        return RefusingProtocol.session(
          cause: error, configuration: configuration, delegate: delegate,
          delegateQueue: delegateQueue)
      }
    }

    /// Whether libraries and linkage are what pinning stands on; asked once for each process.
    static func selfTest() throws(PlatformError) { try verdict.get() }

    /// Every request asks for the generation itself.
    static func pinsChanged(for transport: PinnedTransport) {}

    /// Refusals carry their token: ``RefusalLog`` finds them.
    static func refusal(for error: any Error, of transport: PinnedTransport) -> PinEvaluation? {
      nil
    }

    private static let verdict: Result<Void, PlatformError> = {
      if let name = pp_hook_missing_symbol() {
        return .failure(
          .cannotPin(
            reason: "\(String(cString: name)) is not interposed; hint: link libcurl dynamically"))
      }
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

    private static func pinned(
      for transport: PinnedTransport, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) throws(PlatformError) -> URLSession {
      let pinned = PinnedConfiguration.pinning(configuration)
      pp_capture_begin()
      let session = URLSession(
        configuration: pinned, delegate: delegate, delegateQueue: delegateQueue)
      guard let multi = pp_capture_end() else {
        throw .cannotPin(reason: "a URLSession was made without exactly one libcurl handle")
      }
      let hook = SessionHook(
        transport: transport, requestTimeout: configuration.timeoutIntervalForRequest)
      var options = HookCallbacks.options(
        for: hook, store: transport.validator.storePointer,
        checkHost: transport.validator.trust != .pinnedKeysOnly)
      guard pp_session_adopt(multi, &options) != 0 else {
        options.release(options.context)
        throw .cannotPin(reason: "out of memory")
      }
      return session
    }
  }
#endif
