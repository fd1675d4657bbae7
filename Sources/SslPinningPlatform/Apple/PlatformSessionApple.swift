#if canImport(Security)
  import Foundation

  /// Makes pinned `URLSession`s on Apple's systems: the system's own, with a delegate of ours before the app's.
  enum PlatformSession {
    static let mayResumeOthers = true

    /// - A background configuration gets a session that refuses everything: another process makes its
    ///   connections, goes on after the app has ended, and follows redirects unasked.
    static func make(
      for transport: PinnedTransport, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      guard configuration.identifier == nil else {
        let door = SessionDoor(.refusing(reason: RefusingProtocol.reason)) {
          [weak transport] in transport
        }
        return URLSession(
          configuration: RefusingProtocol.configuration,
          delegate: SessionDelegate(door, app: delegate), delegateQueue: delegateQueue)
      }
      let session = URLSession(
        configuration: PinnedConfiguration.pinning(configuration),
        delegate: SessionDelegate(SessionDoor(.pinned) { transport }, app: delegate),
        delegateQueue: delegateQueue)
      transport.platform.sessions.add(session)
      transport.followPins()
      return session
    }

    /// The libraries are the system's own: nothing can be missing.
    static func selfTest() throws(PlatformError) {}
  }
#endif
