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
public final class FixedPinsClient: PinnedTransportOwner {
  /// The pins in force, for as long as the client lives.
  public let pins: FixedPins

  /// The transport that judges this client's connections.
  public let transport: PinnedTransport

  private let judge: FixedJudge

  /// Every verdict from now on, accepted or refused. Each caller has a stream of its own; a slow one
  /// loses the oldest beyond 256.
  public var evaluations: AsyncStream<PinEvaluation> { judge.evaluations.stream }

  /// Sends the failure reports that are due, then returns.
  public func flushReports() async { await judge.reporter?.flush() }

  /// A client over these pins.
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
    let reporter: FailureReporter?
    do throws(ReportingError) {
      reporter = try FailureReporter.make(
        reporting, trust: pins.trust, storage: storage, clocks: clocks, events: { _ in })
    } catch { throw .badReporting(error) }
    judge = FixedJudge(policy: policy, clocks: clocks, reporter: reporter)
    do throws(TrustError) {
      transport = try PinnedTransport(
        trust: pins.trust, judge: judge,
        longestRefresh: clocks.longestRefresh)
    } catch { throw .badAnchor(error) }
    self.pins = pins
  }
}
