import Foundation
import SslPinning
import SslPinningRules

extension PinEvaluation {
  /// A refusal, for tests of what an app does and says after one.
  ///
  ///     let refusal = PinEvaluation.refused(host: "api.example.com")
  ///     #expect(message(for: refusal) == "This connection is not safe.")
  ///
  /// Refusals alone: an acceptance comes from a policy that was shown a validated chain, and nothing
  /// an app's code could mistake for one can be made by hand.
  ///
  /// - Parameters:
  ///   - host: the host as a request named it.
  ///   - outcome: what happened; by default the server's key is not pinned (rule `leaf-pin`).
  ///   - presented: the pins that the server showed, leaf first.
  ///   - expected: the pins that would have been accepted for the leaf.
  ///   - expectedCA: the pins that would have been accepted above the leaf.
  ///   - registry: which registry decided; `nil` where pins did not come from one. What helps is told by it: without one a
  ///     refresh is no remedy. A client of a ``ScriptedRegistry`` has one: `registryStatus.stamp`.
  ///   - isStale: whether that registry was last confirmed too long ago.
  public static func refused(
    host: String, _ outcome: RefusedOutcome = .mismatch(.leaf), presented: [SPKIPin] = [],
    expected: [Pin] = [], expectedCA: [Pin] = [], registry: RegistryStamp? = nil,
    isStale: Bool = false
  ) -> PinEvaluation {
    PinEvaluation(
      host: host, outcome: outcome.outcome, decision: .refuse, presented: presented,
      expectedLeaf: expected, expectedCA: expectedCA, registry: registry, isStale: isStale)
  }

  /// What can have happened where a connection was refused: every `PinEvaluation.Outcome` but
  /// `matched`.
  public struct RefusedOutcome: Hashable, Sendable {
    let outcome: Outcome

    /// No entry speaks of the host.
    public static let unlisted = Self(outcome: .unlisted)
    /// The host is listed, and all its pins have expired or none could be read.
    public static let noLivePin = Self(outcome: .noLivePin)

    /// The chain or the host name is not valid.
    public static func chainRejected(_ fault: ChainFault) -> Self {
      Self(outcome: .chainRejected(fault))
    }

    /// The host is listed, and a demanded pin is missing.
    public static func mismatch(_ role: PinRole) -> Self { Self(outcome: .mismatch(role)) }

    /// The host's entry demands this, which `TrustMode.pinnedKeysOnly` cannot check.
    public static func uncheckable(_ role: PinRole) -> Self { Self(outcome: .uncheckable(role)) }

    /// The host's entry demands these, which this version of the client does not know.
    public static func clientTooOld(_ names: [String]) -> Self {
      Self(outcome: .clientTooOld(names))
    }

    /// The registry as a whole expired at this time.
    public static func registryExpired(at time: Date) -> Self {
      Self(outcome: .registryExpired(at: time.unixSeconds))
    }

    /// This key is on the deny list.
    public static func denied(_ pin: SPKIPin) -> Self { Self(outcome: .denied(pin)) }

    /// The request would have gone out in clear text.
    public static func clearText(scheme: String) -> Self {
      Self(outcome: .clearText(scheme: scheme))
    }

    /// The host name cannot be read.
    public static func unreadableHost(_ error: HostNameError) -> Self {
      Self(outcome: .unreadableHost(error))
    }

    /// The connection was never judged, for this reason.
    public static func unjudged(_ reason: String) -> Self { Self(outcome: .unjudged(reason)) }
  }
}
