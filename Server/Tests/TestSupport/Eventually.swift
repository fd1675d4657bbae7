import Foundation

/// Waits until `condition` holds, asking every few milliseconds; false when it did not hold in time.
///
/// For what other threads do, and no clock of the test's can hasten. The limit is for a machine that
/// is busy with other tests: nobody measures anything by it.
public func eventually(
  within seconds: Double = 60, _ condition: @Sendable () -> Bool
) async -> Bool {
  let deadline = Date().addingTimeInterval(seconds)
  while !condition() {
    guard Date() < deadline else { return false }
    // why: yields the thread; a bare loop would starve the tests beside this one.
    try? await Task.sleep(nanoseconds: 5_000_000)
  }
  return true
}
