/// Does what is due for documents without a look, once an interval, for one after the other.
struct DocumentUpkeep: Sendable {
  let keepers: [DocumentKeeper]
  let clock: any ServerClock
  /// Milliseconds.
  let interval: Int64

  /// Goes on until the task is cancelled.
  func run() async {
    while (try? await clock.sleep(milliseconds: interval)) != nil, !Task.isCancelled {
      for keeper in keepers {
        guard !Task.isCancelled else { return }
        await keeper.upkeep(at: clock.now())
      }
    }
  }
}
