import Foundation

/// How often something can be done.
///
/// - In seconds of this process's own CPU time: others on the machine move wall time more than any
///   change of the code does.
enum Measurement {
  /// Calls of `work` per CPU second, over at least `seconds` of them.
  static func rate<Value>(seconds: Double, _ work: () throws -> Value) rethrows -> Double {
    var calls = 0
    var batch = 1
    let start = cpuSeconds()
    var elapsed = 0.0
    repeat {
      for _ in 0..<batch { keep(try work()) }
      calls += batch
      elapsed = cpuSeconds() - start
      // Reading the clock must not become part of what is measured.
      if elapsed < seconds / 10 { batch *= 2 }
    } while elapsed < seconds
    return Double(calls) / elapsed
  }

  /// A figure without more digits than it deserves.
  static func text(_ value: Double) -> String {
    value < 1000 ? "\((value * 10).rounded() / 10)" : "\(Int(value))"
  }

  /// What the optimizer must not find unused.
  @inline(never)
  private static func keep<Value>(_ value: Value) { withExtendedLifetime(value) {} }

  private static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
