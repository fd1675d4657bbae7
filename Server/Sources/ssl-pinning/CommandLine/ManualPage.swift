import Foundation

/// The manual, written from the table of commands: a page on the whole, and one on each command, in the macros of man(7).
///
/// The pages are ASCII, and the same for the same table: nothing in them is of the day on which they were made.
struct ManualPage {
  /// Of the file, without its section: `ssl-pinning-keys-generate`.
  let name: String
  /// The page's source.
  let text: String

  /// All pages, the one on the whole in front.
  static func all(_ commands: [Command], version: String) -> [ManualPage] {
    [overview(commands, version)] + commands.map { page(on: $0, version) }
  }

  private static func overview(_ commands: [Command], _ version: String) -> ManualPage {
    var lines = heading("ssl-pinning", "dynamic TLS identity pinning, from the terminal", version)
    lines += [
      ".SH SYNOPSIS", ".B ssl\\-pinning", ".I COMMAND", "[\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]",
      ".SH DESCRIPTION",
      escaped(
        "Keeps a signed list of the keys that servers show, and checks, signs and uses such lists."),
      "Each command has a page of its own.", ".SH COMMANDS",
    ]
    for command in commands {
      lines += [
        ".TP", ".BR \(escaped(pageName(of: command))) (1)", escaped(command.summary),
      ]
    }
    lines += exitStatus
    lines += [
      ".SH FILES", ".TP", ".I /etc/ssl\\-pinning/config.yaml",
      "the server's configuration, if neither a flag nor the working directory has another", ".TP",
      ".I /var/lib/ssl\\-pinning", "where the service of the package keeps its keys and its store",
    ]
    lines += [".SH SEE ALSO"] + references(to: commands)
    return ManualPage(name: "ssl-pinning", text: lines.joined(separator: "\n") + "\n")
  }

  private static func page(on command: Command, _ version: String) -> ManualPage {
    let name = pageName(of: command)
    var lines = heading(name, command.summary, version)
    lines += [".SH SYNOPSIS", ".B ssl\\-pinning \(escaped(command.name))"]
    lines += command.flags.filter(\.isRequired).map { escaped($0.usage) }
    if command.flags.contains(where: { !$0.isRequired }) { lines.append("[\\fIFLAGS\\fR]") }
    if command.argument.count != .none { lines.append(escaped(command.argument.usage)) }
    if !command.notes.isEmpty { lines.append(".SH DESCRIPTION") }
    for note in command.notes { lines += paragraph(note) }
    if command.argument.count != .none {
      lines += [".SH ARGUMENTS"] + item(command.argument.usage, command.argument.help)
    }
    lines += [".SH OPTIONS"]
    for flag in command.flags { lines += item(flag.usage, flag.help) }
    lines +=
      item("--help", "the same in short") + exitStatus + [".SH SEE ALSO", ".BR ssl\\-pinning (1)"]
    return ManualPage(name: name, text: lines.joined(separator: "\n") + "\n")
  }

  private static func pageName(of command: Command) -> String {
    (["ssl-pinning"] + command.words).joined(separator: "-")
  }

  private static func heading(_ name: String, _ summary: String, _ version: String) -> [String] {
    [
      ".TH \(escaped(name.uppercased())) 1 \"\" \"ssl\\-pinning \(version)\" \"ssl\\-pinning\"",
      ".SH NAME", "\(escaped(name)) \\- \(escaped(summary))",
    ]
  }

  private static var exitStatus: [String] {
    let meanings = [
      "yes", "no: refused, invalid, differs", "wrong usage", "could not find out: network, file",
    ]
    return [".SH EXIT STATUS"] + meanings.enumerated().flatMap { item("\($0.offset)", $0.element) }
  }

  private static func references(to commands: [Command]) -> [String] {
    let names = commands.map { ".BR \(escaped(pageName(of: $0))) (1)" }
    return names.dropLast().map { $0 + "," } + names.suffix(1)
  }

  private static func item(_ usage: String, _ help: String) -> [String] {
    [
      ".TP", ".B \"\(escaped(usage).replacingOccurrences(of: "\"", with: "\\(dq"))\"",
      escaped(help),
    ]
  }

  /// A paragraph; as it stands if its lines are indented, because then they are no running text.
  private static func paragraph(_ note: String) -> [String] {
    let lines = note.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard lines.contains(where: { $0.hasPrefix(" ") }) else {
      return [".PP"] + lines.filter { !$0.isEmpty }.map(escaped)
    }
    return [".PP", ".nf"] + lines.map(escaped) + [".fi"]
  }

  /// The text as roff prints it: every character as it stands, at the beginning of a line too.
  private static func escaped(_ text: String) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": out += "\\e"
      case "-": out += "\\-"
      case "'": out += "\\(aq"
      case "`": out += "\\(ga"
      case "^": out += "\\(ha"
      case "~": out += "\\(ti"
      case _ where scalar.isASCII: out.unicodeScalars.append(scalar)
      default: out += "\\[u\(String(scalar.value, radix: 16, uppercase: true).leftPadded)]"
      }
    }
    return out.hasPrefix(".") ? "\\&\(out)" : out
  }
}

extension String {
  /// With zeros in front, four digits at least.
  fileprivate var leftPadded: String { String(repeating: "0", count: max(0, 4 - count)) + self }
}
