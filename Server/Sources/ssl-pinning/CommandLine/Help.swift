/// The help texts, written from the table of commands.
enum Help {
  /// The list of commands.
  static func overview(_ commands: [Command]) -> String {
    """
    ssl-pinning: dynamic TLS identity pinning, from the terminal

    usage: ssl-pinning COMMAND [FLAGS] [ARGUMENTS]

    \(list(commands))

      help [COMMAND]    this text, or all about one command
      --version         which version this is

    \(exitCodes)

    """
  }

  /// The commands that begin with one word.
  static func group(_ word: String, _ commands: [Command]) -> String {
    "usage: ssl-pinning \(word) COMMAND\n\n\(list(commands))\n"
  }

  /// All about one command.
  static func command(_ command: Command) -> String {
    var words = ["usage: ssl-pinning", command.name]
    words += command.flags.filter(\.isRequired).map(\.usage)
    if command.flags.contains(where: { !$0.isRequired }) { words.append("[FLAGS]") }
    if command.argument.count != .none { words.append(command.argument.usage) }
    var rows = command.flags.map { ($0.usage, $0.help) } + [("--help", "this text")]
    if command.argument.count != .none {
      rows.insert((command.argument.usage, command.argument.help), at: 0)
    }
    var sections = ["\(command.name): \(command.summary)", words.joined(separator: " ")]
    sections.append(columns(rows))
    sections += command.notes
    sections.append(exitCodes)
    return sections.joined(separator: "\n\n") + "\n"
  }

  private static let exitCodes =
    "exit codes: 0 yes, 1 no (refused, invalid, differs), 2 wrong usage, "
    + "3 could not find out (network, file)"

  private static func list(_ commands: [Command]) -> String {
    columns(commands.map { ($0.name, $0.summary) })
  }

  private static func columns(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { name, help in
      "  \(name)\(String(repeating: " ", count: width - name.count + 4))\(help)"
    }.joined(separator: "\n")
  }
}

extension FlagDescription {
  /// As it stands in a usage line.
  var usage: String {
    let names = short.map { "\(name), \($0)" } ?? name
    guard let placeholder else { return names }
    return impliedValue == nil ? "\(names) \(placeholder)" : "\(names)[=\(placeholder)]"
  }
}
