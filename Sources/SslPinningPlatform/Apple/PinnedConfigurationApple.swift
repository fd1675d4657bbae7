#if canImport(Security)
  import Foundation

  /// The configuration of a pinned session: the app's, with its escapes closed (``ConfigurationEscapes``).
  ///
  /// - Nothing is known of which sessions of a process share TLS sessions: an ephemeral configuration is no promise.
  /// - No early data: it leaves before the server is known. From SDK 26 on an app can ask for it.
  /// - The classic loader. In the newer one a task that was asked about a certificate is not asked about it again:
  ///   not for another host, either, that it is redirected to.
  enum PinnedConfiguration {
    static func pinning(_ other: URLSessionConfiguration) -> URLSessionConfiguration {
      let fresh = URLSessionConfiguration.ephemeral.protocolClasses ?? []
      let closed = ConfigurationEscapes.closed(
        other, refusing: [ClearTextProtocol.self],
        fresh: fresh.map { ($0, class_getImageName($0).map { String(cString: $0) }) })
      guard let closed else { return RefusingProtocol.configuration }
      if #available(iOS 18.4, macOS 15.4, tvOS 18.4, watchOS 11.4, visionOS 2.4, *) {
        closed.usesClassicLoadingMode = true
      }
      if #available(iOS 26.0, macOS 26.0, tvOS 26.0, watchOS 26.0, visionOS 26.0, *) {
        closed.enablesEarlyData = false
      }
      return closed
    }
  }

  /// The second lock of a session that cannot pin: fails every request that it is asked about, with the cause.
  final class RefusingProtocol: FailingProtocol {
    static let reason =
      "background sessions run in another process; hint: use an ephemeral configuration"

    static var configuration: URLSessionConfiguration {
      let refusing = URLSessionConfiguration.ephemeral
      refusing.protocolClasses = [RefusingProtocol.self]
      refusing.urlCache = nil
      return refusing
    }

    override class var failure: (code: URLError.Code, text: String) {
      (.secureConnectionFailed, PlatformError.cannotPin(reason: reason).description)
    }
  }
#endif
