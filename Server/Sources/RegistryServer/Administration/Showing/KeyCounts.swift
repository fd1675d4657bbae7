import CanonicalJSON
import RegistryCore

/// How many keys of one or many endpoints are in each state.
struct KeyCounts: Sendable, Equatable {
  private var counts: [KeyState: Int] = [:]

  init() {}

  init(_ endpointKeys: EndpointKeys) {
    for key in endpointKeys.keys { counts[key.state, default: 0] += 1 }
    for candidate in endpointKeys.candidates.values { counts[candidate.state, default: 0] += 1 }
  }

  subscript(state: KeyState) -> Int { counts[state, default: 0] }

  mutating func add(_ other: KeyCounts) { counts.merge(other.counts, uniquingKeysWith: +) }

  /// The state that asks for a probe first, of those that there are.
  var worst: KeyState? {
    [.held, .observed, .retiring, .staged, .active].first { self[$0] > 0 }
  }

  var json: JSONValue {
    .object(JSONObject(KeyState.allCases.map { ($0.rawValue, .count(self[$0])) }))
  }
}

extension CandidateKey {
  /// Where the key stands.
  var state: KeyState { isHeld ? .held : .observed }
}
