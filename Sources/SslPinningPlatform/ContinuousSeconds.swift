import Foundation

#if canImport(Darwin)
  import Darwin
#endif

/// Seconds of a clock that never goes back and does not stand still while the machine sleeps: a device
/// that was asleep for a night is late for everything that was due in it.
///
/// The system's uptime stands still then, on Apple's systems and on Linux. There it is also one of the calls
/// that an app has to give Apple a reason for; this one is not.
package func continuousMoment() -> Double {
  #if canImport(Darwin)
    Double(clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW)) / 1_000_000_000
  #else
    var time = timespec()
    // Fails for an unknown clock only, which Linux has had since 2.6.39.
    if clock_gettime(CLOCK_BOOTTIME, &time) != 0 { clock_gettime(CLOCK_MONOTONIC, &time) }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  #endif
}

/// Whole seconds of ``continuousMoment()``.
package func continuousSeconds() -> Int64 { Int64(continuousMoment()) }
