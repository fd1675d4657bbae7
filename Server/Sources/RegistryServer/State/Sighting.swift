import SslPinningRules

/// One key that a look showed under a valid chain, and where it was seen.
struct Sighting {
  let chain: SeenChain
  var places: Set<Place>

  var pin: SPKIPin { chain.leaf.pin }

  /// Who saw it, by the vantage points' names.
  var vantages: Set<String> { Set(places.map(\.vantage)) }

  /// The keys of a look, in the order of its observations. Several addresses may show several keys.
  static func all(in look: Look) -> [Sighting] {
    var found: [Sighting] = []
    for observation in look.observations {
      guard case .accepted(let chain) = observation.outcome else { continue }
      if let index = found.firstIndex(where: { $0.pin == chain.leaf.pin }) {
        found[index].places.insert(observation.place)
      } else {
        found.append(Sighting(chain: chain, places: [observation.place]))
      }
    }
    return found
  }
}
