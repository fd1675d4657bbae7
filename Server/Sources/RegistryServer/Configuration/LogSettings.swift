/// How much an event matters.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
  /// Every probe and every request that was refused.
  case debug
  /// What changed.
  case info
  /// What an operator should look at: refused probes, keys that wait for confirmation.
  case warn
  /// What keeps the server from doing its work.
  case error

  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .debug: 0
    case .info: 1
    case .warn: 2
    case .error: 3
    }
  }
}

/// How events are written.
public enum LogFormat: String, Sendable, CaseIterable {
  /// A JSON object each.
  case json
  /// A line of `name=value` for people.
  case text
}
