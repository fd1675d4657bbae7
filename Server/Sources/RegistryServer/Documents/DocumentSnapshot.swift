import RegistryCore
import SslPinningRules

/// What holds of a document, as metrics and notifications ask for it: without a copy of all that is known.
struct DocumentStanding: Sendable {
  var conditions: [Condition]
  /// How many keys wait for a person. Of endpoints that are not in force nothing can be approved.
  var held: Int

  init(_ machine: DocumentMachine, in file: String) {
    conditions = Condition.alerts(
      of: machine.state.markingWhoLeft(machine.endpoints), machine.lastProbes,
      in: file, under: machine.endpoints.vouchingTerms, for: machine.endpoints
    ).whileProbed(under: machine.state)
    held = machine.endpoints.reduce(0) {
      $0 + (machine.state.keysByEndpoint[$1.id]?.held.count ?? 0)
    }
  }
}

/// All that is known of a document at one moment, to be shown.
struct DocumentSnapshot: Sendable {
  let file: String
  let settings: CoordinatorSettings
  let state: DocumentState
  /// The endpoints in force.
  let endpoints: [WatchedEndpoint]
  /// By the endpoints' ids.
  let lastProbes: [String: LastProbe]
  let published: PublishedDocument?

  /// One endpoint for each set of keys that endpoints share, picked at random among those that are not
  /// probed every few seconds anyway: that has its time.
  func representatives() -> [MassChangeDetector.Group: String] {
    var picked: [MassChangeDetector.Group: String] = [:]
    for endpoint in endpoints.shuffled() where !state.isPaused(endpoint.id) {
      guard let endpointKeys = state.keysByEndpoint[endpoint.id], !endpointKeys.keys.isEmpty,
        !endpointKeys.isWaiting
      else { continue }
      picked[endpointKeys.keys.map(\.pin)] = endpoint.id
    }
    return picked
  }

  /// What its alerts amount to.
  var alertConditions: [Condition] {
    Condition.alerts(
      of: state, lastProbes, in: file, under: endpoints.vouchingTerms, for: endpoints
    ).whileProbed(under: state)
  }

  /// The denied keys that stand above the keys of an endpoint.
  func deniedAbove(_ id: String, at now: Int64) -> [SPKIPin] {
    let paths = state.keysByEndpoint[id]?.pathsInUse(at: now) ?? []
    return state.deniedPins.intersection(paths.joined()).sorted()
  }

  /// Whether any endpoint has shown this key, as its own or above it. One that was withdrawn is told by its alert, for a day.
  func knows(_ pin: SPKIPin) -> Bool {
    let alerts = state.alerts.values.joined()
    if alerts.contains(where: { $0.kind == .keyWithdrawn && $0.pin == pin }) { return true }
    let keysByEndpoint = state.keysByEndpoint.values
    return keysByEndpoint.contains { endpointKeys in
      endpointKeys.keys.contains { $0.pin == pin || $0.paths.values.contains { $0.contains(pin) } }
        || endpointKeys.candidates.values.contains { $0.chain.path.contains { $0.pin == pin } }
        || endpointKeys.authorities[pin] != nil
    } || lastProbes.keys.contains { paths(of: $0).contains { $0.contains { $0.pin == pin } } }
  }

  private func paths(of id: String) -> [[SeenCertificate]] {
    (lastProbes[id]?.probe.observations ?? []).compactMap {
      guard case .accepted(let chain) = $0.outcome else { return nil }
      return chain.path
    }
  }
}

extension [Condition] {
  /// Without what the last probe showed of endpoints that are paused: nobody probes them, so nobody knows what apps meet there.
  /// A key that is held there waits for a person still, and refuses nobody that is known of.
  fileprivate func whileProbed(under state: DocumentState) -> [Condition] {
    compactMap { condition in
      guard state.isPaused(condition.subject) else { return condition }
      switch condition.kind {
      case .alert(.chainRefused), .alert(.chainDisputed), .alert(.deniedKeySeen),
        .alert(.caMissing), .alert(.unreachable), .alert(.vantageBlocked):
        return nil
      default:
        var condition = condition
        condition.isRefusing = false
        return condition
      }
    }
  }
}
