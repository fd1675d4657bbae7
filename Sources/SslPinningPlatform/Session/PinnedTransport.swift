import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The door to a platform's pinned `URLSession`s: every connection of every session made here is
/// judged by one ``PinEvaluating`` before a byte of a request leaves.
///
/// - Every connection counts: redirects to another host, connections reused after a change of pins,
///   HTTP/2 streams. On Linux TLS sessions are never resumed, because resumption skips the verdict; Apple's
///   systems resume them as they like, and a request without a verdict is told afterwards.
/// - Clear text (`http`, `ws`, `ftp`) is refused, first or redirected, whatever the host.
/// - Nothing is served from a cache: an unpinned session may have filled it.
/// - A session that cannot pin fails every request with the cause; it never sends one unpinned.
public final class PinnedTransport: Sendable {
  /// Who decides.
  public let judge: any PinEvaluating
  /// Judges chains under the transport's trust mode.
  let validator: ChainValidator
  /// The verdicts behind the platform's errors.
  let refusals: RefusalLog
  /// What the platform's sessions of this transport share.
  let platform: SessionState
  /// Runs the requests that need no session.
  let client: PlatformClient

  /// Seconds that a parked request waits for newer pins before it is judged again without them.
  let longestRefresh: Double
  /// How requests without a session are run.
  let settings: RequestSettings

  /// A transport whose chains are judged under `trust` and whose pins `judge` knows.
  ///
  /// - Throws: ``TrustError`` where an anchor cannot be read.
  public convenience init(trust: TrustMode, judge: any PinEvaluating) throws(TrustError) {
    try self.init(trust: trust, judge: judge, longestRefresh: 3)
  }

  /// - Parameter longestRefresh: tests on busy machines are more patient than apps.
  package init(
    trust: TrustMode, judge: any PinEvaluating, longestRefresh: Double,
    settings: RequestSettings = RequestSettings()
  ) throws(TrustError) {
    self.settings = settings
    client = PlatformClient(settings: settings)
    self.longestRefresh = longestRefresh
    validator = try ChainValidator(trust: trust)
    self.judge = judge
    refusals = RefusalLog()
    platform = SessionState()
  }

  private init(sharing other: PinnedTransport) {
    judge = other.judge
    validator = other.validator
    refusals = other.refusals
    platform = other.platform
    longestRefresh = other.longestRefresh
    settings = other.settings
    client = PlatformClient(settings: other.settings)
  }

  /// The same judge, settings and books, without this transport's client.
  ///
  /// For the delegates of sessions that the client owns: a session keeps its delegate until it is invalidated, and
  /// one that held this transport would keep its client, whose end invalidates the session.
  func withoutClient() -> PinnedTransport { PinnedTransport(sharing: self) }

  /// Checks that this process can pin at all.
  ///
  /// - Throws: ``PlatformError``.
  public static func selfTest() throws(PlatformError) {
    try PlatformSession.selfTest()
  }

  /// Whether the platform may resume, on a pinned session, a TLS session that an unpinned one of this process made.
  package static var mayResumeOthers: Bool { PlatformSession.mayResumeOthers }

  /// A `URLSession` of the platform's own kind that follows the judge.
  ///
  /// - Important: `URLSession` keeps its delegate, and on Apple's systems so this transport and its judge, until
  ///   it is invalidated. Invalidate a session that you give up.
  ///
  /// - Parameters:
  ///   - configuration: kept, save for its cache and protocol classes.
  ///   - delegate: keeps every delegate method.
  ///   - delegateQueue: as for `URLSession`.
  public func makeSession(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)? = nil,
    delegateQueue: OperationQueue? = nil
  ) -> URLSession {
    PlatformSession.make(
      for: self, configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
  }

  /// The verdict behind an error of this transport's sessions and requests; `nil` where the request failed
  /// for another reason: a cancel, being offline, a time-out.
  public func refusal(for error: any Error) -> PinEvaluation? {
    error as? PinEvaluation ?? refusals.refusal(for: error)
      ?? platform.recent.refusal(for: error, at: continuousSeconds())
  }

  /// To be called when the judge's ``PinEvaluating/generation`` has grown, so that open connections are
  /// retired at once.
  ///
  /// On Linux there is nothing to do: every request is held against the generation anyway. On Apple's
  /// systems only new connections are judged; sessions look at the generation with every handshake
  /// and every finished request, and a change that nobody calls out waits for the next of these.
  public func pinsChanged() {
    followPins()
    client.pinsChanged()
  }

  /// Flushes the sessions if the pins in force are others than at the last call.
  func followPins() { platform.sessions.follow(judge.generation) }
}
