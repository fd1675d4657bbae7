extension Command {
  /// Every command of the tool, in the order of the help.
  static let all: [Command] =
    [
      Up.command, ConfigCheck.command, TokenCommand.command,
    ] + AdminCommands.all + [
      Get.command,
      PinCommand.command,
      Verify.command, Sign.command,
      KeysGenerate.command, KeysRotate.command, KeysSignSet.command, StoreCommands.adopt,
      StoreCommands.reset, Canonicalize.command,
    ]
}
