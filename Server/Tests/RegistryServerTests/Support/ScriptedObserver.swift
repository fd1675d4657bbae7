import RegistryCore
import RegistryServer
import SslPinningPlatform
import SslPinningRules

/// Endpoints that show what a test says.
final class ScriptedObserver: EndpointObserver {
  private struct State {
    var current: [String: Look] = [:]
    var script: [String: [Look]] = [:]
    var looks: [String: Int] = [:]
  }

  private let state = Locked(State())

  /// What an endpoint shows from now on.
  func show(_ look: Look, at fqdn: String) { state.withLock { $0.current[fqdn] = look } }

  /// What it shows first, one look each.
  func show(_ looks: [Look], at fqdn: String) { state.withLock { $0.script[fqdn] = looks } }

  /// How often it was looked at.
  func looks(at fqdn: String) -> Int { state.withLock { $0.looks[fqdn, default: 0] } }

  func look(at endpoint: WatchedEndpoint) async -> Look {
    let fqdn = "\(endpoint.fqdn)"
    return state.withLock { state in
      state.looks[fqdn, default: 0] += 1
      if let next = state.script[fqdn]?.first {
        state.script[fqdn]?.removeFirst()
        return next
      }
      return state.current[fqdn] ?? .unreachable(reason: "nothing was scripted")
    }
  }
}
