import CanonicalJSON
import Foundation
import TestSupport

/// The built `ssl-pinning`, run as a user runs it.
enum Tool {
  /// Where it is: beside the tests' own executable.
  static func path() throws -> String { try BuiltProgram.path("ssl-pinning") }

  /// Proxies of the machine that runs the tests are none of theirs.
  static let noProxies = Dictionary(
    uniqueKeysWithValues: ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]
      .flatMap { [($0, ""), ($0.uppercased(), "")] })

  /// Runs a command to its end.
  ///
  /// - Parameter seconds: a tool that takes longer hangs, and the test fails.
  static func run(
    _ arguments: [String], environment: [String: String] = [:], input: [UInt8] = [],
    seconds: Double = 60
  ) async throws -> ChildProcess.Outcome {
    try await start(arguments, environment: environment, input: input).wait(seconds: seconds)
  }

  static func run(_ arguments: String...) async throws -> ChildProcess.Outcome {
    try await run(arguments)
  }

  /// Starts a command that stays up.
  static func start(
    _ arguments: [String], environment: [String: String] = [:], input: [UInt8] = []
  ) throws -> ChildProcess {
    return try ChildProcess(
      path(), arguments, environment: noProxies.merging(environment) { _, new in new },
      input: input)
  }
}

extension ChildProcess.Outcome {
  /// Standard output as strict JSON.
  var json: JSONValue {
    get throws { try JSONValue(parsing: Array(stdout.utf8)) }
  }

  /// Whether the messages follow the house rules: lower case first, no trace of a crash.
  var speaksProperly: Bool {
    guard let first = stderr.unicodeScalars.first else { return false }
    return !first.properties.isUppercase
      && !stderr.contains("Fatal error") && !stderr.contains("Error Domain")
  }
}
