/// Measures how long looks take.
struct MeasuredObserver: EndpointObserver {
  let base: any EndpointObserver

  func look(at endpoint: WatchedEndpoint) async -> Look {
    let begun = MonotonicReading.now()
    var look = await base.look(at: endpoint)
    look.duration = MonotonicReading.now() - begun
    return look
  }
}
