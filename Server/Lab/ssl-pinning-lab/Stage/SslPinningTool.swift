import Foundation
import TestSupport

/// The tool that operators run, beside this program.
enum SslPinningTool {
  /// Runs a command to its end.
  ///
  /// - Returns: what it printed.
  /// - Throws: ``Inconclusive`` where it did not do what it was asked.
  @discardableResult
  static func run(_ arguments: [String]) async throws -> String {
    let outcome = try await ChildProcess.run(try path(), arguments)
    try show(
      outcome.exitCode == 0,
      "ssl-pinning \(arguments.joined(separator: " ")): \(outcome.stderr)\(outcome.stdout)")
    return outcome.stdout
  }

  /// Starts a command that goes on, in a directory that holds its number in `pid`. It ends with the last
  /// reference to it.
  static func start(_ arguments: [String], in directory: TemporaryDirectory) throws -> ChildProcess
  {
    try ChildProcess(
      "/bin/sh", ["-c", "echo $$ >pid && exec \"$@\"", "sh", try path()] + arguments,
      directory: directory.url)
  }

  static func path() throws -> String { try BuiltProgram.path("ssl-pinning") }
}
