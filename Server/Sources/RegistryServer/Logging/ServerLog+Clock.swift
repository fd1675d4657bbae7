import RegistryCore
import SslPinningRules

extension ServerLog {
  /// Tells that the machine's clock is doubted, came back, or is believed as it is. Lines of the log have the
  /// machine's own time all the while, as those of its other programs have.
  func note(_ change: SteadyTime.Change) {
    switch change {
    case .doubted(let wall, let time):
      event(
        .warn, "clock_doubted",
        [
          "clock": RFC3339.text(wall), "time": RFC3339.text(time),
          "message":
            "the machine's clock does not agree with the time that passed; the server goes on by"
            + " its last time; hint: put the clock right, or say that it is: ssl-pinning admin adopt-clock",
        ])
    case .returned(let time):
      event(.info, "clock_returned", ["time": RFC3339.text(time)])
    case .adopted(let time, let before):
      event(
        .warn, "clock_adopted", ["time": RFC3339.text(time), "before": RFC3339.text(before)])
    }
  }
}
