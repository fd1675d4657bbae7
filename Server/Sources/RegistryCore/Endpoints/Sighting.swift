import SslPinningRules

/// One key that a look showed under a valid chain, and where it was seen.
package struct Sighting {
  /// Each place that showed it, and its validated path there, in the order of the look. Never empty.
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

  /// The keys of a look, in the order of its observations. Several addresses may show several keys.
  package static func all(in look: Look) -> [Sighting] {
    var found: [Sighting] = []
    for observation in look.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].observed.append((observation.place, chain))
      } else {
        found.append(Sighting(observed: [(observation.place, chain)]))
      }
    }
    return found
  }

  /// What is left without the paths that have a denied key in them; `nil` if that is nothing.
  func without(_ denied: Set<SPKIPin>) -> Sighting? {
    let left = observed.filter { denied.isDisjoint(with: $0.chain.path.map(\.pin)) }
    return left.isEmpty ? nil : Sighting(observed: left)
  }
}
