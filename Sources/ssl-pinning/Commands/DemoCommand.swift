/// `demo`: the main job on loopback, start to end.
enum DemoCommand {
  private static let once = Flag("--once", "end after the last line instead of staying up")

  static let command = Command(
    "demo", "run the main job on loopback, one line for each thing proved",
    flags: [once.description], run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    throw .couldNotFindOut("the demo is not there yet")
  }
}
