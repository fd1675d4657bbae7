extension Command {
  /// Every command of the tool, in the order of the help.
  static let all: [Command] = [
    Demo.command, KeysGenerate.command, Sign.command, Verify.command, PinCommand.command,
    Canonicalize.command,
  ]
}
