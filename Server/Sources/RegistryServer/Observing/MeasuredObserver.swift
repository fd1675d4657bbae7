import RegistryCore
/// Measures how long looks take.
struct MeasuredObserver: ResolvingObserver {
  let base: any EndpointObserver

  func look(at endpoint: WatchedEndpoint) async -> Look {
    let begun = MonotonicReading.now()
    var look = await base.look(at: endpoint)
    look.duration = MonotonicReading.now() - begun
    return look
  }

  func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    (base as? any ResolvingObserver)?.whenFoundLate(tell)
  }
}
