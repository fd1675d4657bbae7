import Foundation
import TestSupport

/// iproute2's `ip`.
enum IPCommand {
  /// Runs it, and throws what it complained of.
  @discardableResult
  static func run(_ arguments: String...) async throws -> String {
    let end = try await ChildProcess.run("ip", arguments)
    guard end.exitCode == 0 else {
      let words = end.stderr.trimmingCharacters(in: .whitespacesAndNewlines)
      throw Inconclusive("ip \(arguments.joined(separator: " ")): \(words)")
    }
    return end.stdout
  }
}
