import Pinning

/// One key that a look showed under a valid chain, and who saw it.
struct Sighting {
  let chain: SeenChain
  var vantages: Set<String>

  var pin: SPKIPin { chain.leaf.pin }

  /// The keys of a look, in the order of its observations. Several addresses may show several keys.
  static func all(in look: Look) -> [Sighting] {
    var found: [Sighting] = []
    for observation in look.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].vantages.insert(observation.vantage)
      } else {
        found.append(Sighting(chain: chain, vantages: [observation.vantage]))
      }
    }
    return found
  }
}

/// What a decision takes into account beside the endpoint's own past.
public struct DecisionContext: Sendable {
  /// Whether the hosts that the endpoint speaks of have published keys of other endpoints: then its
  /// first key joins a list, and must be confirmed as if it had changed.
  public var isListed = false
  /// Who decides about a new key.
  public var approval = ApprovalMode.automatic
  /// The vantage points that have to agree.
  public var vantages: Set<String> = [Observation.direct]
  /// Keys that are never published.
  public var denied: Set<SPKIPin> = []
  /// Whether too many endpoints changed at once.
  public var isSudden = false

  /// Nothing out of the ordinary.
  public init() {}
}
