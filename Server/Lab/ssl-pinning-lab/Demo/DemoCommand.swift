/// `demo [--once]`: the main job on loopback, start to end.
///
/// Starts a private CA, two HTTPS servers, a man in the middle and a registry server, all on
/// 127.0.0.1, and removes everything at its end.
enum DemoCommand {
  /// - Returns: the exit status: 0 only if every claim held.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    guard arguments.isEmpty || arguments == ["--once"] else {
      Main.complain("unknown argument \(arguments[0])")
      return 2
    }
    let staysUp = arguments.isEmpty
    let holds = await Demo.run(say: say) { stage in
      guard staysUp else { return }
      let tool = try? SslPinningTool.path()
      await stage.directory.untilTerminated {
        for line in Demo.hints(for: stage, tool: tool) { say(line) }
      }
    }
    return holds ? 0 : 1
  }
}
