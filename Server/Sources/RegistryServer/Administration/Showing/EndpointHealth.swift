import RegistryCore
/// The worst that can be said of an endpoint.
enum EndpointHealth: String, Sendable, CaseIterable {
  /// All is well.
  case ok
  /// Nobody probes it for now.
  case paused
  /// It has no published key yet.
  case pending
  /// A key is held, or the endpoint left the configuration.
  case attention
  /// It could not be asked three times in a row, or what it shows proves nothing.
  case failing
  /// It shows a denied key.
  case alarm

  init(alerts: [ServerAlert], hasKeys: Bool, isPaused: Bool) {
    let kinds = Set(alerts.map(\.kind))
    if kinds.contains(.deniedKeySeen) {
      self = .alarm
    } else if !kinds.isDisjoint(with: [.chainRefused, .unreachable, .signing, .storing]) {
      self = .failing
    } else if !kinds.isEmpty {
      self = .attention
    } else {
      self = hasKeys ? (isPaused ? .paused : .ok) : .pending
    }
  }
}
