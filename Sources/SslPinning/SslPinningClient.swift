import Foundation
import SslPinningPlatform
import SslPinningRules

/// An app's way to servers whose keys stand on a signed list, and to no others.
///
///     let result = await SslPinningClient.initialize(config: config)
///     guard case .success(let client) = result else { return }  // never fall back to a plain session
///     let session = client.createPinnedSession()
///
/// - Fails closed: there is no client without a verified registry, and no pinned session that lets a
///   request out unpinned.
/// - Hosts are bound to their own pins: a pinned key of one host is worth nothing for another.
/// - Sessions already handed out follow the pins: a connection is judged again once they change.
/// - The registry is refreshed in the background for as long as the client lives, and at once when
///   a server shows a key that is not pinned. The last good one is kept between runs.
///
/// ## Topics
///
/// ### Making one
///
/// - ``initialize(config:accepting:)``
/// - ``init(config:accepting:)``
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
/// - ``flushReports()``
///
/// ### The registry
///
/// - ``registryStatus``
/// - ``registryProblems``
/// - ``events``
/// - ``refresh()``
/// - ``accept(document:)``
public final class SslPinningClient: Sendable {
  private let keeper: RegistryUpdater
  /// The transport that judges this client's connections.
  package let transport: PinnedTransport

  /// Makes a client from the registry that is at hand or the network brings.
  ///
  /// A stored registry younger than the refresh interval serves at once. Otherwise the network is
  /// asked: for 3 seconds where there is a stored or a bundled registry to fall back on, else until
  /// it answers or ``SslPinningConfig/fetchTimeout`` is over. A stored registry that has expired, or was not
  /// confirmed for a week, is not hurried back to: the network has that time then, and a second for each
  /// mirror. ``registryStatus`` says which it was.
  ///
  /// - Parameters:
  ///   - config: what the app ships.
  ///   - document: one that came by another road, say out of a push message while the app was not running: see
  ///     ``accept(document:)``. If it is refused, ``events`` begin with ``PinningEvent/handedRegistryRefused(_:)``
  ///     and the client starts without it.
  /// - Returns: the client, or why there is none; then make no request over another session instead.
  public static func initialize(
    config: SslPinningConfig, accepting document: Data? = nil
  ) async -> Result<SslPinningClient, SslPinningError> {
    do throws(SslPinningError) {
      return .success(try await SslPinningClient(config: config, accepting: document))
    } catch {
      return .failure(error)
    }
  }

  /// The throwing twin of ``initialize(config:accepting:)``.
  ///
  /// - Throws: ``SslPinningError``.
  public convenience init(
    config: SslPinningConfig, accepting document: Data? = nil
  ) async throws(SslPinningError) {
    try await self.init(config: config, accepting: document, clocks: .system)
  }

  package convenience init(
    config: SslPinningConfig, accepting document: Data? = nil, clocks: Clocks
  ) async throws(SslPinningError) {
    let url: RegistryURL
    do throws(RegistryURL.Fault) { url = try RegistryURL(config.endpointUrl) } catch {
      throw SslPinningError(error, url: config.endpointUrl)
    }
    let anchors: ChainValidator
    do throws(TrustError) { anchors = try ChainValidator(anchorsOf: config.trust) } catch {
      throw .badAnchor(error)
    }
    let fetcher = DocumentFetcher(validator: anchors)
    let trust = try RegistryTrust(config, name: url.lastPathComponent)
    try await self.init(
      config: config, source: .remote(url, fetcher, config), trust: trust,
      handed: document.map { [UInt8]($0) }, anchors: anchors, clocks: clocks)
  }

  /// A client that believes the document at hand for ever: for tools. The configuration's URL is not
  /// used, and nothing is stored.
  package convenience init(
    config: SslPinningConfig, document: [UInt8], clocks: Clocks = .system
  ) async throws(SslPinningError) {
    var config = config
    config.storage = .none
    try await self.init(
      config: config, source: .document(document),
      trust: try RegistryTrust(config, name: ""), clocks: clocks)
  }

  /// A client over any source, under any trust: for the tests of apps.
  package init(
    config: SslPinningConfig, source: RegistrySource, trust: RegistryTrust, handed: [UInt8]? = nil,
    anchors: ChainValidator? = nil, clocks: Clocks
  ) async throws(SslPinningError) {
    do throws(PlatformError) { try PinnedTransport.selfTest() } catch {
      switch error {
      case .cannotPin(let reason): throw .platformCannotPin(reason: reason)
      }
    }
    // Before the network is asked: no registry makes these right.
    do throws(PolicyError) {
      try config.trust.check(
        unlistedHosts: config.unlistedHosts, enforcement: config.enforcement)
    } catch { throw .badConfiguration(error) }
    let events = Broadcast<PinningEvent>(history: 16)
    let reporter: FailureReporter?
    do throws(ReportingError) {
      reporter = try FailureReporter.make(
        config.reporting, trust: config.trust, anchors: anchors, storage: config.storage,
        clocks: clocks
      ) { [weak events] in events?.send(.reporting($0)) }
    } catch { throw .badReporting(error) }
    keeper = try await RegistryUpdater(
      config: config, source: source, trust: trust,
      store: StateStore(config, trust: trust), handed: handed, clocks: clocks, events: events,
      reporter: reporter)
    do throws(TrustError) {
      transport = try PinnedTransport(
        trust: config.trust, anchors: anchors, judge: keeper,
        longestRefresh: clocks.longestRefresh)
    } catch { throw .badAnchor(error) }
    keeper.whenPinsChange { [weak transport] in transport?.pinsChanged() }
  }

  /// Fetches the registry now, past caches on the way.
  ///
  /// - Returns: whether the pins changed.
  /// - Throws: ``SslPinningError``; then the last good registry stays in force.
  @discardableResult
  public func refresh() async throws(SslPinningError) -> Bool {
    try await keeper.refresh(bypassingCaches: true).get()
  }

  /// Believes a newer list that came by another road than the registry's own: a push message, a file, a code
  /// on paper, the device's management. For the day on which the registry's host is gone.
  ///
  /// It may come from anybody: it is judged by its signatures and its number, like what is fetched, and an older
  /// one changes nothing. A statement alone (a kilobyte) is enough where the list itself is in force or can be
  /// fetched. It confirms nothing: ``RegistryStatus/age`` counts from when it was issued, at the latest.
  ///
  /// - Parameter document: the registry's document as its server publishes it, or its statement part.
  /// - Returns: whether the pins changed.
  /// - Throws: ``SslPinningError``; then the registry in force stays. A document of format 1, and one beside a
  ///   retired statement, is refused always: nothing tells an old one from a new one. So is one of format 2 if
  ///   no statement is believed yet and ``SslPinningConfig/minimumRegistry`` is not set.
  @discardableResult
  public func accept(document: Data) async throws(SslPinningError) -> Bool {
    try await keeper.accept(handed: [UInt8](document))
  }

  /// Every verdict from now on, accepted or refused. Each caller has a stream of its own; a slow one
  /// loses the oldest beyond 256.
  public var evaluations: AsyncStream<PinEvaluation> { keeper.evaluations.stream }

  /// What else happens: registries that come into force, refreshes that fail. Begins with what
  /// happened at the start.
  public var events: AsyncStream<PinningEvent> { keeper.events.stream }

  /// Sends the failure reports that are due, then returns: for the time that an app has left in the
  /// background. Does nothing without ``SslPinningConfig/reporting``.
  public func flushReports() async { await keeper.reporter?.flush() }

  /// What in the registry in force could not be used.
  public var registryProblems: [RegistryProblem] { keeper.problems }

  /// Which registry is in force, and when its server last confirmed it.
  package var registryStamp: RegistryStamp { keeper.trusted.stamp }

  /// Where the registry in force came from, how old it is, and until when it counts.
  public var registryStatus: RegistryStatus { keeper.status }
}
