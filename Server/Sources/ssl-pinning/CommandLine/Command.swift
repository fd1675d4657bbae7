/// A command of the tool: one table that parsing, help and "did you mean" read.
struct Command: Sendable {
  /// The words that call it, such as `keys generate`.
  let name: String
  /// One line for the list of commands.
  let summary: String
  let argument: Argument
  let flags: [FlagDescription]
  /// What a user has to know beyond the table: paragraphs below it.
  let notes: [String]
  /// Does it.
  let run: @Sendable (Invocation) async throws(CommandFailure) -> ExitStatus

  init(
    _ name: String, _ summary: String, argument: Argument = .none, flags: [FlagDescription] = [],
    notes: [String] = [],
    run: @escaping @Sendable (Invocation) async throws(CommandFailure) -> ExitStatus
  ) {
    self.name = name
    self.summary = summary
    self.argument = argument
    self.flags = flags
    self.notes = notes
    self.run = run
  }

  /// The words of the name.
  var words: [String] { name.split(separator: " ").map(String.init) }
}
