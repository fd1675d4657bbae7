import RegistryCore
import RegistryServer
import SslPinningPlatform
import SslPinningRules

/// Endpoints that show what a test says.
final class ScriptedObserver: EndpointProber {
  private struct State {
    var current: [String: ProbeResult] = [:]
    var script: [String: [ProbeResult]] = [:]
    var probes: [String: Int] = [:]
  }

  private let state = Locked(State())

  /// What an endpoint shows from now on.
  func show(_ probe: ProbeResult, at fqdn: String) { state.withLock { $0.current[fqdn] = probe } }

  /// What it shows first, one probe each.
  func show(_ probes: [ProbeResult], at fqdn: String) {
    state.withLock { $0.script[fqdn] = probes }
  }

  /// How often it was probed.
  func probes(at fqdn: String) -> Int { state.withLock { $0.probes[fqdn, default: 0] } }

  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    let fqdn = "\(endpoint.fqdn)"
    return state.withLock { state in
      state.probes[fqdn, default: 0] += 1
      if let next = state.script[fqdn]?.first {
        state.script[fqdn]?.removeFirst()
        return next
      }
      return state.current[fqdn] ?? .unreachable(reason: "nothing was scripted")
    }
  }
}
