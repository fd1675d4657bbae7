import Foundation
import Pinning
import PinningPlatform

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

  /// A client over these pins.
  ///
  /// - Throws: ``FixedPinsError``: `noPins`, `badConfiguration`, `badAnchor`, `platformCannotPin`.
  public convenience init(pins: FixedPins) throws(FixedPinsError) {
    try self.init(pins: pins, clocks: .system)
  }

  package init(pins: FixedPins, clocks: Clocks) throws(FixedPinsError) {
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
    do throws(TrustError) {
      transport = try PinnedTransport(
        trust: pins.trust, judge: FixedJudge(policy: policy, clocks: clocks),
        longestRefresh: clocks.longestRefresh)
    } catch { throw .badAnchor(error) }
    self.pins = pins
  }
}
