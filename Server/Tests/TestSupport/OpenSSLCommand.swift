import Foundation

/// The `openssl` program in a directory of its own: keys, certificates and signatures made by
/// somebody else's code.
public struct OpenSSLCommand: Sendable {
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  private let folder: TemporaryDirectory

  public init() throws { folder = try TemporaryDirectory() }

  /// Runs one command, such as `["x509", "-in", path("a.pem")]`, and expects it to succeed.
  public func run(_ arguments: [String], input: [UInt8] = []) async throws {
    let end = try await ChildProcess.run(
      "openssl", arguments, directory: folder.url, input: input)
    guard end.exitCode == 0 else {
      throw Failure(description: "openssl \(arguments.joined(separator: " ")): \(end.stderr)")
    }
  }

  /// Runs one command with `-out` and returns what it wrote there. Relative paths are in the
  /// command's own directory, where the file stays under `name`.
  public func make(_ name: String, _ arguments: [String]) async throws -> [UInt8] {
    try await run(arguments + ["-out", name])
    return try read(name)
  }

  /// A file in the command's directory.
  public func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: folder.file(name)))
  }

  /// Writes a file for a command to read.
  public func write(_ bytes: [UInt8], to name: String) throws {
    _ = try folder.write(bytes, to: name)
  }
}
