import Pinning

/// A key that was seen and is not published. Times are Unix seconds.
public struct CandidateKey: Sendable, Hashable {
  /// Why a key that was seen often enough is not published by itself.
  public enum HoldReason: String, Sendable, Hashable, CaseIterable, Comparable {
    /// Not every vantage point saw it.
    case vantagePoints = "vantage-points"
    /// The CA behind it was never seen at this endpoint, and only one vantage point vouches for it.
    case newIssuer = "new-issuer"
    /// Too many endpoints changed at once, and only one vantage point vouches for it.
    case suddenChange = "sudden-change"
    /// The endpoint's keys are approved by a person.
    case manual

    public static func < (left: HoldReason, right: HoldReason) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// When it was first seen.
  public let firstSeen: Int64
  /// When it was last seen.
  public var lastSeen: Int64
  /// How many looks showed it.
  public var looks = 0
  /// How many of these showed it to every vantage point.
  public var agreed = 0
  /// The validated path that last showed it.
  public var chain: SeenChain
  /// Who saw it in the last look that showed it, sorted.
  public var vantages: [String] = []
  /// Why it is held, sorted; empty while it needs more looks.
  public var reasons: [HoldReason] = []

  /// A key that was just seen.
  public init(firstSeen: Int64, chain: SeenChain) {
    (self.firstSeen, lastSeen, self.chain) = (firstSeen, firstSeen, chain)
  }

  /// Whether it waits for more than further looks.
  public var isHeld: Bool { !reasons.isEmpty }
}
