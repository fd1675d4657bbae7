import Foundation

/// What the program says, to people and to whoever reads it by a pipe.
enum Terminal {
  /// Writes a line and flushes it, even if standard output is a pipe or a file.
  @Sendable static func say(_ line: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
  }

  /// Reports wrong usage.
  static func complain(_ text: String) {
    try? FileHandle.standardError.write(
      contentsOf: Data("\(text); hint: ssl-pinning-lab help\n".utf8))
  }
}
