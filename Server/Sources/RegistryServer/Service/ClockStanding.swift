import RegistryCore
import SslPinningRules

/// What is known of the server's time at one moment. Times are Unix seconds.
struct ClockStanding: Sendable, Equatable {
  /// The time that the server goes by.
  var time: Int64
  /// What the machine's clock says.
  var wall: Int64
  /// Whether the kernel calls that clock synchronised.
  var isSynchronized: Bool
  /// Since when that clock is doubted; `nil` while the server goes by it.
  var doubtedSince: Int64?
  /// Whether it is known to be right (``SteadyTime/isConfirmed(at:)``).
  var isConfirmed: Bool

  /// What is amiss, for people; `nil` if nothing is.
  var trouble: String? {
    guard doubtedSince != nil else { return nil }
    return
      "the machine's clock says \(RFC3339.text(wall)), and the server goes by \(RFC3339.text(time))"
      + ", its last time and what passed since; hint: put the clock right, by a time daemon, or say that"
      + " it is right: ssl-pinning admin adopt-clock"
  }

  /// The same as an alert about the server, of no document.
  var alert: ServerAlert? {
    guard let since = doubtedSince, let trouble else { return nil }
    return ServerAlert(kind: .clock, message: trouble, since: since)
  }

  /// The times of which one is right. Somebody has to be able to say that the clock is right, with a token of before
  /// or with one that was made by the clock that is doubted; and a chain that is valid at either counts, as at
  /// clients: otherwise no endpoint that renewed meanwhile could be watched until somebody says which one it is.
  var times: [Int64] { doubtedSince == nil ? [time] : [time, wall] }
}
