/// Does what is due for documents without a probe, once an interval, for one after the other.
struct DocumentUpkeep: Sendable {
  let coordinators: [DocumentCoordinator]
  let clock: any ServerClock
  /// Milliseconds.
  let interval: Int64

  /// Goes on until the task is cancelled.
  func run() async {
    while (try? await clock.sleep(milliseconds: interval)) != nil, !Task.isCancelled {
      for coordinator in coordinators {
        guard !Task.isCancelled else { return }
        await coordinator.upkeep(at: clock.now())
      }
    }
  }
}
