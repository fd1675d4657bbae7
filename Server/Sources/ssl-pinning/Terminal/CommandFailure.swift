/// Why a command ended without its result. The text is lower case, cause first, then a hint.
enum CommandFailure: Error, Sendable {
  /// It was read, and is not good.
  case no(String)
  /// The command line contradicts itself or the world.
  case usage(String)
  /// It could not be read, written or reached.
  case couldNotFindOut(String)

  var message: String {
    switch self {
    case .no(let text), .usage(let text), .couldNotFindOut(let text): text
    }
  }

  var status: ExitStatus {
    switch self {
    case .no: .no
    case .usage: .wrongUsage
    case .couldNotFindOut: .couldNotFindOut
    }
  }
}
