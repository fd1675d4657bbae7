import Foundation

/// `completion` and `manual`: what a shell and a reader of manuals know of the tool, made from the table of commands.
enum ShellCommands {
  static let completion = Command(
    "completion", "print the completions for a shell",
    argument: Argument(placeholder: "SHELL", help: "bash, zsh or fish", count: .one),
    notes: [
      "The Debian package has them in place. Elsewhere, for example:\n"
        + "  ssl-pinning completion bash > ~/.local/share/bash-completion/completions/ssl-pinning\n"
        + "  ssl-pinning completion zsh > ~/.zfunc/_ssl-pinning    # a directory of $fpath\n"
        + "  ssl-pinning completion fish > ~/.config/fish/completions/ssl-pinning.fish"
    ],
    run: runCompletion)

  static let manual = Command(
    "manual", "write the manual pages: one on the whole, and one on each command",
    argument: Argument(
      placeholder: "DIR", help: "a directory, for files such as ssl-pinning-up.1", count: .one),
    notes: ["The Debian package has them in place: man ssl-pinning-up."],
    run: runManual)

  private static func runCompletion(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let name = invocation.arguments.first ?? ""
    guard let shell = Completions.Shell(rawValue: name) else {
      let shells = Completions.Shell.allCases.map(\.rawValue).joined(separator: ", ")
      throw .usage("no completions for \"\(name.shortened)\"; hint: \(shells)")
    }
    let completions = Completions(commands: Command.all, leading: ServerArguments.leading)
    try Terminal.write(Array(completions.script(for: shell).utf8))
    return .yes
  }

  private static func runManual(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let directory = invocation.arguments.first ?? ""
    for page in ManualPage.all(Command.all, version: Version.current) {
      try OutputFile.write(Array(page.text.utf8), to: "\(directory)/\(page.name).1")
    }
    return .yes
  }
}
