extension Command {
  /// Every command of the tool, in the order of the help.
  static let all: [Command] = [
    DemoCommand.command, KeysGenerate.command, Sign.command, Verify.command, PinCommand.command,
    Get.command,
    Canonicalize.command,
  ]
}
