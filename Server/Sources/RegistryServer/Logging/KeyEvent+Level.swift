import RegistryCore

extension KeyEvent {
  /// How it is logged. Whatever keeps a legitimate key from being published, or looks like
  /// somebody in the middle, is a warning: so is every key that is published though nobody announced it.
  var level: LogLevel {
    switch self {
    case .published(_, isFirst: true), .retired, .activated: .info
    case .published, .held, .deniedKeySeen, .deniedAuthoritySeen, .waiting, .lapsed,
      .tooManyCandidates, .refused,
      .unreachable, .withdrawn, .undecided:
      .warn
    }
  }
}
