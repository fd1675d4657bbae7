import Foundation
import SslPinningPlatform
import SslPinningRules

/// An app's way to servers whose pins it ships: no registry, no network before the first request.
///
///     let client = try FixedPinsClient(pins: .infoPlist())
///     let session = client.createPinnedSession()
///
/// - Fails closed: there is no client without pins that can be read, and no pinned session that lets
///   a request out unpinned.
/// - Pins are ``FixedPins``: from an Info.plist, from bundled certificates, from literals.
///
/// ## Topics
///
/// ### Making one
///
/// - ``initialize(pins:reporting:storage:)``
/// - ``init(pins:reporting:storage:)``
/// - ``pins``
///
/// ### Requests
///
/// - ``createPinnedSession(configuration:delegate:delegateQueue:)``
/// - ``createPlainSession()``
/// - ``data(for:timeout:)``
/// - ``chunks(for:timeout:)``
/// - ``lists(host:)``
///
/// ### Refusals
///
/// - ``refusal(for:)``
/// - ``evaluations``
/// - ``evaluate(presented:host:)``
/// - ``events``
/// - ``flushReports()``
public final class FixedPinsClient: Sendable {
  /// The pins in force, for as long as the client lives.
  public let pins: FixedPins

  /// The transport that judges this client's connections.
  package let transport: PinnedTransport

  private let judge: FixedPinEvaluator

  /// Every verdict from now on, accepted or refused. Each caller has a stream of its own; a slow one
  /// loses the oldest beyond 256.
  public var evaluations: AsyncStream<PinEvaluation> { judge.evaluations.stream }

  /// What else happens: trouble with failure reports, and on Apple's systems requests that nobody judged.
  public var events: AsyncStream<PinningEvent> { judge.events.stream }

  /// Sends the failure reports that are due, then returns.
  public func flushReports() async { await judge.reporter?.flush() }

  /// A client over these pins, or why there is none; then make no request over another session instead.
  ///
  /// - Parameters:
  ///   - pins: what is pinned, and under whose anchors.
  ///   - reporting: who is told of failed pins; `nil` for nobody.
  ///   - storage: where reports are kept until they are delivered.
  public static func initialize(
    pins: FixedPins, reporting: ReportingConfig? = nil, storage: RegistryStorage = .standard
  ) -> Result<FixedPinsClient, FixedPinsError> {
    do throws(FixedPinsError) {
      return .success(try FixedPinsClient(pins: pins, reporting: reporting, storage: storage))
    } catch {
      return .failure(error)
    }
  }

  /// The throwing twin of ``initialize(pins:reporting:storage:)``.
  ///
  /// - Throws: ``FixedPinsError``: `noPins`, `badConfiguration`, `badAnchor`, `badReporting`,
  ///   `platformCannotPin`.
  ///
  /// - Parameters:
  ///   - pins: what is pinned, and under whose anchors.
  ///   - reporting: who is told of failed pins; `nil` for nobody.
  ///   - storage: where reports are kept until they are delivered.
  public convenience init(
    pins: FixedPins, reporting: ReportingConfig? = nil, storage: RegistryStorage = .standard
  ) throws(FixedPinsError) {
    try self.init(pins: pins, reporting: reporting, storage: storage, clocks: .system)
  }

  package init(
    pins: FixedPins, reporting: ReportingConfig? = nil, storage: RegistryStorage = .none,
    clocks: Clocks
  ) throws(FixedPinsError) {
    // A client that pins nothing would be a plain one under another name, or refuse everything.
    guard !pins.entries.isEmpty else { throw .noPins(host: nil) }
    do throws(PlatformError) { try PinnedTransport.selfTest() } catch {
      switch error {
      case .cannotPin(let reason): throw .platformCannotPin(reason: reason)
      }
    }
    let policy: PinningPolicy
    do throws(PolicyError) {
      policy = try PinningPolicy(
        entries: pins.entries, trust: pins.trust, unlistedHosts: pins.unlistedHosts)
    } catch { throw .badConfiguration(error) }
    let events = Broadcast<PinningEvent>(history: 16)
    let reporter: FailureReporter?
    do throws(ReportingError) {
      reporter = try FailureReporter.make(
        reporting, trust: pins.trust, storage: storage, clocks: clocks
      ) { [weak events] in events?.send(.reporting($0)) }
    } catch { throw .badReporting(error) }
    judge = FixedPinEvaluator(policy: policy, clocks: clocks, events: events, reporter: reporter)
    do throws(TrustError) {
      transport = try PinnedTransport(
        trust: pins.trust, judge: judge,
        longestRefresh: clocks.longestRefresh)
    } catch { throw .badAnchor(error) }
    self.pins = pins
  }
}

/// Answers the transports from pins that never change.
///
/// - Verdicts come from memory.
/// - There is nothing newer to be had: a mismatch is refused at once.
final class FixedPinEvaluator: PinEvaluating {
  private let clocks: Clocks
  private let policy: PinningPolicy
  private let state: Locked<ActivePolicy>
  let evaluations = Broadcast<PinEvaluation>()
  let events: Broadcast<PinningEvent>
  let reporter: FailureReporter?

  init(
    policy: PinningPolicy, clocks: Clocks, events: Broadcast<PinningEvent>,
    reporter: FailureReporter?
  ) {
    self.events = events
    self.reporter = reporter
    self.clocks = clocks
    self.policy = policy
    state = Locked(ActivePolicy(policy, at: TrustTime(clock: clocks.wall())))
  }

  func currentGeneration() -> UInt64 {
    let now = TrustTime(clock: clocks.wall())
    return state.withLock { $0.advance(to: now) }
  }

  /// Nobody vouches for a time here: the system's clock.
  var time: TrustTime? { nil }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    policy.evaluate(evidence, host: host, at: clocks.wall())
  }

  func lists(_ host: HostName) -> Bool { policy.entry(for: host) != nil }

  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {
    evaluations.send(evaluation)
    reporter?.report(evaluation, of: connection)
    if case .unjudged = evaluation.outcome, evaluation.decision == .accept {
      events.send(.unjudgedReuse(evaluation))
    }
  }

  func requestRefresh(after refusal: PinEvaluation) -> Bool { false }

  func refresh(after refusal: PinEvaluation) async {}
}
