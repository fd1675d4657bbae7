/// Which vantage points were silent when they last had all the time that a probe gives them.
///
/// For a minute they are not waited for as long as the others; then one probe finds out whether they are back, so a
/// point that is merely slow is never shut out for good. Pure: times are milliseconds of a clock that is never set.
struct SilentRoutes: Sendable {
  /// For how long a route is hurried.
  static let pause: Int64 = 60_000

  private var since: [Int: Int64] = [:]

  /// The routes that are not to be waited for as long as usual.
  func routes(at now: Int64) -> Set<Int> {
    Set(since.filter { now - $0.value < Self.pause }.keys)
  }

  /// Enters what a probe through a route came to.
  ///
  /// - Parameters:
  ///   - wasHurried: whether it had less than its time: its silence says nothing new.
  ///   - now: when the probe began.
  mutating func note(_ route: Int, isSilent: Bool, wasHurried: Bool, at now: Int64) {
    if !isSilent {
      since[route] = nil
    } else if !wasHurried {
      since[route] = now
    }
  }
}
