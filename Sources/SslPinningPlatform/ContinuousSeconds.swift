import Foundation

#if canImport(Darwin)
  import Darwin
#endif

/// Seconds of a clock that never goes back and does not stand still while the machine sleeps: a device
/// that was asleep for a night is late for everything that was due in it.
///
/// The system's uptime stands still then, on Apple's systems and on Linux.
package func continuousSeconds() -> Int64 {
  #if canImport(Darwin)
    Int64(clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW) / 1_000_000_000)
  #else
    var time = timespec()
    // Fails for an unknown clock only, which Linux has had since 2.6.39.
    guard clock_gettime(CLOCK_BOOTTIME, &time) == 0 else {
      return Int64(ProcessInfo.processInfo.systemUptime)
    }
    return Int64(time.tv_sec)
  #endif
}
