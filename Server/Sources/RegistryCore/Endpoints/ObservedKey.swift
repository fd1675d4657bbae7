import SslPinningRules

/// One key that a probe showed under a valid chain, and where it was seen.
package struct ObservedKey {
  /// Each place that showed it, and its validated path there, in the order of the probe. Never empty.
  private var observed: [(place: Place, chain: SeenChain)]

  /// The first of its paths.
  package var chain: SeenChain { observed[0].chain }

  package var pin: SPKIPin { chain.leaf.pin }

  var places: Set<Place> { Set(observed.map(\.place)) }

  /// The keys above it, by place.
  var paths: [Place: [SPKIPin]] {
    Dictionary(observed.map { ($0.place, $0.chain.above) }, uniquingKeysWith: { $1 })
  }

  /// Who saw it, by the vantage points' names.
  var vantages: Set<String> { Set(observed.map(\.place.vantage)) }

  /// The keys of a probe, in the order of its observations. Several addresses may show several keys.
  package static func all(in probe: ProbeResult) -> [ObservedKey] {
    var found: [ObservedKey] = []
    for observation in probe.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].observed.append((observation.place, chain))
      } else {
        found.append(ObservedKey(observed: [(observation.place, chain)]))
      }
    }
    return found
  }

  /// What is left without the paths that have a denied key in them; `nil` if that is nothing.
  func without(_ denied: Set<SPKIPin>) -> ObservedKey? {
    let left = observed.filter { denied.isDisjoint(with: $0.chain.path.map(\.pin)) }
    return left.isEmpty ? nil : ObservedKey(observed: left)
  }
}
