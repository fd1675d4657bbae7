import Foundation

/// How often something can be done.
///
/// - In seconds of this process's own CPU time: others on the machine move wall time more than any
///   change of the code does.
enum Measurement {
  /// For how long: so many seconds of CPU time (`0.5`), or so many calls (`20x`), for counting instructions.
  enum Budget {
    case seconds(Double)
    case calls(Int)

    init?(_ text: String) {
      if text.hasSuffix("x"), let calls = Int(text.dropLast()), calls > 0 {
        self = .calls(calls)
      } else if let seconds = Double(text), seconds > 0 {
        self = .seconds(seconds)
      } else {
        return nil
      }
    }
  }

  /// Seconds of CPU time that one call of `work` takes.
  static func seconds<Value>(_ budget: Budget, _ work: () throws -> Value) rethrows -> Double {
    var calls = 0
    var batch = 1
    let start = Usage.cpuSeconds
    var elapsed = 0.0
    repeat {
      if case .calls(let wanted) = budget { batch = wanted }
      for _ in 0..<batch { keep(try work()) }
      calls += batch
      elapsed = Usage.cpuSeconds - start
      // Reading the clock must not become part of what is measured.
      if case .seconds(let seconds) = budget, elapsed < seconds / 10 { batch *= 2 }
    } while isUnder(budget, elapsed)
    return elapsed / Double(calls)
  }

  private static func isUnder(_ budget: Budget, _ elapsed: Double) -> Bool {
    if case .seconds(let seconds) = budget { elapsed < seconds } else { false }
  }

  /// What the optimizer must not find unused.
  @inline(never)
  private static func keep<Value>(_ value: Value) { withExtendedLifetime(value) {} }
}
