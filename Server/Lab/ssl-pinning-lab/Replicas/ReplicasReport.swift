import SslPinningPlatform

/// A line for each phase, and what must not be.
final class ReplicasReport: Sendable {
  private let say: @Sendable (String) -> Void
  private let faults = Locked<[String]>([])

  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func note(_ line: String) { say(line) }

  /// Says what is wrong, and lets the drill go on.
  func fault(_ line: String) {
    faults.withLock { $0.append(line) }
    say("WRONG: \(line)")
  }

  var isPassed: Bool { faults.withLock { $0.isEmpty } }
}

extension Duration {
  /// In seconds, with one decimal.
  var tenths: String { (self / .seconds(1)).inTenths }

  /// In whole milliseconds.
  var inMilliseconds: Int { Int((self / .milliseconds(1)).rounded()) }
}
