import SslPinningRules

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
