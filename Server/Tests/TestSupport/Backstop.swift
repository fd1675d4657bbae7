import Foundation

/// Cleans up once this process is gone, however it went: `deinit` and `atexit` do not run after a
/// crash or `kill -9`.
///
/// A shell of its own waits for the end of a connection that only this process holds open, and then
/// runs a script.
public final class Backstop: Sendable {
  private let descriptor = Slot<Int32>()
  private let process: Process

  /// - Parameters:
  ///   - script: what the shell runs in the end.
  ///   - arguments: are its `$1`, `$2`…
  public init(_ script: String, _ arguments: [String]) throws {
    var ends: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    descriptor.set(ends[1])
    process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "trap '' HUP INT TERM\ncat\n" + script, "sh"] + arguments
    let reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    process.standardInput = reading
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    try reading.close()
  }

  deinit { letGo() }

  /// Runs the script now, and returns when it has.
  public func finish() async throws {
    letGo()
    try await offTheCooperativePool { [process] in process.waitUntilExit() }
  }

  private func letGo() { if let descriptor = descriptor.take() { close(descriptor) } }
}
