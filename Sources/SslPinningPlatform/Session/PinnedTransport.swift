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

  /// - Parameters:
  ///   - anchors: those of `trust`, if they were read already: to read the system's takes OpenSSL tens of milliseconds.
  ///   - longestRefresh: tests on busy machines are more patient than apps.
  package init(
    trust: TrustMode, anchors: ChainValidator? = nil, judge: any PinEvaluating,
    longestRefresh: Double, settings: RequestSettings = RequestSettings()
  ) throws(TrustError) {
    self.settings = settings
    client = PlatformClient(settings: settings)
    self.longestRefresh = longestRefresh
    validator =
      if let anchors, anchors.trust == trust { anchors } else { try ChainValidator(trust: trust) }
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
  ///   - configuration: kept, save for its cache and protocol classes. On Linux `HTTPCookieStorage.shared` becomes
  ///     the jar that pinned sessions share.
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

  /// To be called when the judge's ``PinEvaluating/currentGeneration()`` has grown, so that open connections are
  /// retired at once, if the platform lets them be.
  ///
  /// On Linux there is nothing to do: every request is held against the generation anyway. On Apple's
  /// systems only new connections are judged; sessions look at the generation with every handshake
  /// and every finished request, and a change that nobody calls out waits for the next of these.
  public func pinsChanged() {
    followPins()
    client.pinsChanged()
  }

  /// Flushes the sessions if the pins in force are others than at the last call.
  func followPins() { platform.sessions.follow(judge.currentGeneration()) }
}

/// Why this platform cannot pin. Not a refusal: nothing was judged.
public enum PlatformError: Error, Hashable, Sendable {
  /// A library is missing, too old, or another one than pinning works with.
  case cannotPin(reason: String)
}

extension PlatformError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotPin(let reason): "this platform cannot pin: \(reason)"
    }
  }
}

/// Verdicts for connections that another stack makes: one's own TLS client, gRPC, a WebSocket
/// library.
extension PinnedTransport {
  /// Judges a chain as a server sent it.
  ///
  /// - The chain is validated under the transport's trust mode, for `host`, before any pin is looked
  ///   at; other valid paths to the same leaf are tried where the first is refused for a CA.
  /// - Does not wait for newer pins. A refusal that they could turn starts to fetch them, so that
  ///   the next handshake meets them.
  /// - The verdict is told like that of any other connection.
  ///
  /// - Important: let the connection live only where the decision is `accept`, send nothing before,
  ///   and ask again for every connection and after every change of pins. A TLS session that is
  ///   resumed shows no certificates: switch resumption off.
  ///
  /// - Parameters:
  ///   - presented: the certificates in DER, leaf first.
  ///   - host: the host as the request names it, not the SNI.
  public func evaluate(presented: [[UInt8]], host: String) -> PinEvaluation {
    told(of: host) { name in
      let verdict = validator.chainVerdict(presented: presented, host: name, judge: judge)
      return (verdict.evaluation, ConnectionFacts(port: nil, verdict))
    }
  }

  /// Judges the handshake of a session that somebody else made, or whose verdict a task's own delegate took away, its
  /// wait for newer pins included.
  ///
  /// - Parameter allowsUnlisted: whether the policy's leave for unlisted hosts counts. Never on a pinned session, see
  ///   ``SessionRole/pinned``.
  func accepts(
    host: String, port: Int, allowsUnlisted: Bool, validate: ConnectionJudgement.Validate
  ) async -> Bool {
    let judgement = ConnectionJudgement(transport: self, acceptsUnlisted: allowsUnlisted)
    let verdict = await judgement.judge(host: host, port: port, challenged: 0, validate: validate)
    return verdict.evaluation.decision == .accept
  }

  /// Whether an entry speaks of a host. Closed: also if nobody can read it.
  func lists(_ host: String) -> Bool { (try? HostName(host)).map(judge.lists) ?? true }

  /// Gives a verdict on a connection that another stack makes, tells it, and starts to fetch newer pins if
  /// they could turn it. A host that cannot be read is refused.
  func told(
    of host: String, _ verdict: (HostName) -> (PinEvaluation, ConnectionFacts)
  ) -> PinEvaluation {
    let evaluation: PinEvaluation
    var facts = ConnectionFacts()
    do throws(HostNameError) {
      (evaluation, facts) = verdict(try HostName(host))
    } catch {
      evaluation = PinEvaluation(host: host, outcome: .unreadableHost(error), decision: .refuse)
    }
    if evaluation.decision == .refuse { _ = judge.requestRefresh(after: evaluation) }
    judge.record(evaluation, of: facts)
    return evaluation
  }
}

/// How much of a machine the requests of one transport take, where the platform leaves it to us.
package struct RequestSettings: Sendable {
  /// Requests to one host and port that have a socket or a stream at a time, and as many again whose
  /// bodies are streamed; the others wait, and cost about a kilobyte each.
  package var perOrigin = 64
  /// The same over all hosts.
  package var total = 512
  /// Threads that share the work, where it is more than a little.
  package var lanes: Int {
    max(1, min(4, ProcessInfo.processInfo.activeProcessorCount, perOrigin / 8))
  }
  /// Bytes of a streamed body that may wait for their reader.
  package var unread = 256 * 1024
  /// Bytes from which a body is handed over instead of copied.
  package var handedOver = 32 * 1024
  /// False for tests: as with a libcurl that was built without it.
  package var speaksHTTP2 = true
  /// A proxy's URL, for tests; `nil`: the environment's, such as `https_proxy`.
  package var proxy: String?

  package init() {}
}
