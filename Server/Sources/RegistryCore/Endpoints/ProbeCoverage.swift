/// Which places a probe got an answer from: whether it can tell that a key is gone, or only that the places
/// which showed the key could not be asked.
///
/// - A key is missed if every place that showed it answers, and none shows it. An address that never
///   answered never showed a key, so it keeps none listed.
/// - Only a valid chain for the right name is an answer. A refused chain is as good as silence.
/// - An address that the name no longer has is answered for by the addresses that its vantage point got.
/// - A silent vantage point keeps a key listed only if this server never saw the key itself, or if regions
///   show different keys. Otherwise whoever cuts a vantage point off would keep his key listed.
/// - If the resolver was silent and addresses were remembered, nobody knows which addresses the name has:
///   then what this server asked counts as silent.
struct ProbeCoverage {
  private let asked: Set<Place>
  private let answered: Set<Place>
  private let answering: Set<String>
  private let vantages: Set<String>
  private let isUnion: Bool

  init(_ probe: ProbeResult, _ context: DecisionContext) {
    let silenced = Set(probe.observations.filter(\.isRemembered).map(\.vantage))
    asked = Set(probe.observations.map(\.place))
    answered = Set(
      probe.observations.filter { $0.isAccepted && !silenced.contains($0.vantage) }.map(\.place))
    answering = Set(answered.map(\.vantage))
    vantages = context.vantages
    isUnion = context.isUnion
  }

  /// Whether a key that this probe does not show was missed. A key from an older record, of which nobody
  /// knows where it was seen, is missed if every place that was asked answered.
  func misses(_ key: KnownKey) -> Bool {
    let places = key.seenAt.isEmpty ? asked : Set(key.seenAt.keys)
    let isSeenHere = places.contains { $0.vantage == ProbeObservation.direct }
    return places.allSatisfy { place in
      let isHere = place.vantage == ProbeObservation.direct
      return !vantages.contains(place.vantage) || !isHere && isSeenHere && !isUnion
        || answered.contains(place) || isGone(place)
    }
  }

  /// Whether an address is none of the name any more: its vantage point answers, and got others.
  func isGone(_ place: Place) -> Bool {
    answering.contains(place.vantage) && !asked.contains(place)
  }
}

extension ProbeObservation {
  /// Where it was made.
  var place: Place { Place(vantage: vantage, address: address) }

  /// Whether the chain was valid and the name was right.
  var isAccepted: Bool { if case .accepted = outcome { true } else { false } }
}
