/// `demo`: the main job on loopback, start to end.
enum DemoCommand {
  private static let once = Flag("--once", "end after the last line instead of staying up")

  static let command = Command(
    "demo", "run the main job on loopback, one line for each thing proved",
    flags: [once.description],
    notes: [
      "Starts a private CA, two HTTPS servers, a man in the middle and a registry server, all on\n"
        + "127.0.0.1, and removes everything at its end. Exit 0 only when every claim held."
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let staysUp = !invocation[once]
    // Announced, not written: a reader who goes away must not end it before it has cleaned up.
    let holds = await Demo.run { line in
      Console.announce(line)
    } stay: { stage in
      guard staysUp else { return }
      let tool = CommandLine.arguments.first
      await stage.directory.untilTerminated {
        for line in Demo.hints(for: stage, tool: tool) { Console.announce(line) }
      }
    }
    return holds ? .yes : .no
  }
}
