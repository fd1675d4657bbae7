/// What the tool says by its exit code.
enum ExitStatus: Int32, Sendable {
  /// It is so, it was done.
  case yes = 0
  /// What was read or asked for is not good: refused, invalid, different.
  case no = 1
  /// The command line is wrong; nothing was done.
  case wrongUsage = 2
  /// Something could not be read, written or reached in time.
  case couldNotFindOut = 3

  /// Of the statuses of several targets the one to end with.
  func worse(_ other: ExitStatus) -> ExitStatus {
    rawValue >= other.rawValue ? self : other
  }
}
