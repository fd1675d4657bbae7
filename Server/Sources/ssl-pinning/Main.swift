import Foundation

/// The tool `ssl-pinning`: parses the command line, runs one command, exits with what it says.
@main
enum Main {
  static func main() async {
    Terminal.prepare()
    exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  private static func run(_ words: [String]) async -> ExitStatus {
    let parser = ArgumentParser(commands: Command.all, leading: ServerArguments.leading)
    let request: ArgumentParser.Request
    do throws(UsageError) { request = try parser.parse(words) } catch {
      Terminal.say("\(error)")
      Terminal.say("usage: \(usage(words, parser))")
      return .wrongUsage
    }
    do throws(CommandFailure) {
      switch request {
      case .run(let command, let invocation): return try await command.run(invocation)
      case .help: try Terminal.write(Array(Help.overview(parser.commands).utf8))
      case .helpOn(let command): try Terminal.write(Array(Help.command(command).utf8))
      case .helpOnGroup(let word):
        try Terminal.write(Array(Help.group(word, parser.group(word)).utf8))
      case .version: try Terminal.write(line: "ssl-pinning \(Version.current)")
      }
      return .yes
    } catch {
      Terminal.say(error.message)
      return error.status
    }
  }

  /// Where the right usage stands.
  private static func usage(_ words: [String], _ parser: ArgumentParser) -> String {
    guard let command = parser.commands.first(where: { words.starts(with: $0.words) }) else {
      return "ssl-pinning --help"
    }
    return "ssl-pinning \(command.name) --help"
  }
}

extension Command {
  /// Every command of the tool, in the order of the help.
  static let all: [Command] =
    [
      Up.command, ConfigCheck.command, TokenCommand.command,
      AnnounceCommand.command, VantageJoin.command, VantageServe.command,
    ] + AdminCommands.all + [
      Get.command,
      PinCommand.command,
      Verify.command, Sign.command,
      CheckCommand.command, DoctorCommand.command, ExplainCommand.command, ExportCommand.command,
      ImportCommand.command,
      CAInit.command, CAIssue.command, CARenew.command, CARotate.command, CAConvert.command,
      KeysGenerate.command, KeysRotate.command, KeysSignSet.command, StoreCommands.adopt,
      StoreCommands.reset,
    ] + StoreTransferCommands.all + [
      Canonicalize.command, ShellCommands.completion, ShellCommands.manual,
    ]
}
