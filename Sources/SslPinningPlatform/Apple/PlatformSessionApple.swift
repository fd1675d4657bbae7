import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// Makes pinned `URLSession`s on Apple's systems: the system's own, with a delegate of ours before
  /// the app's.
  enum PlatformSession {
    /// What a transport knows of its sessions.
    struct State: Sendable {
      let sessions = LiveSessions()
      let recent = RecentRefusals()
    }

    static func make(
      for transport: PinnedTransport, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      guard configuration.identifier == nil else {
        return RefusingProtocol.session(delegate: delegate, delegateQueue: delegateQueue)
      }
      let session = URLSession(
        configuration: PinnedConfiguration.pinning(configuration),
        delegate: SessionDelegate(transport: transport, app: delegate),
        delegateQueue: delegateQueue)
      transport.platform.sessions.add(session)
      transport.platform.sessions.follow(transport.judge.generation)
      return session
    }

    /// The libraries are the system's own: nothing can be missing.
    static func selfTest() throws(PlatformError) {}

    static func pinsChanged(for transport: PinnedTransport) {
      transport.platform.sessions.follow(transport.judge.generation)
    }

    static func refusal(for error: any Error, of transport: PinnedTransport) -> PinEvaluation? {
      transport.platform.recent.refusal(for: error, at: uptime)
    }

    /// Seconds of a clock that never goes back and goes on while the device sleeps.
    static var uptime: Int64 { continuousSeconds() }
  }
#endif
