import RegistryCore
/// Measures how long probes take.
struct MeasuredProber: ResolvingProber {
  let base: any EndpointProber

  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    let begun = MonotonicReading.now()
    var probe = await base.probe(endpoint)
    probe.duration = MonotonicReading.now() - begun
    return probe
  }

  func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    (base as? any ResolvingProber)?.whenFoundLate(tell)
  }
}
