import Foundation

/// Ends a server and removes its directory when the process that started it is gone, however it
/// went: `deinit` and `atexit` do not run after a crash or `kill -9`.
///
/// A shell of its own waits for the end of a connection that only this process holds open. It takes the
/// server's number from a file, and ends it only if it works in the server's directory: by then the
/// number may be somebody else's.
final class ServerGuard: Sendable {
  private let descriptor: Int32

  /// - Parameters:
  ///   - directory: is removed.
  ///   - pidFile: the server's number is its first line; relative to `directory`.
  ///   - workingDirectory: the server's, relative to `directory`.
  init(directory: TemporaryDirectory, pidFile: String, workingDirectory: String) throws {
    var ends: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    descriptor = ends[1]
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = [
      "-c", Self.script, "sh", directory.path(), pidFile, directory.path(workingDirectory),
    ]
    let reading = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    process.standardInput = reading
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    try reading.close()
  }

  deinit { close(descriptor) }

  private static let script = """
    trap '' HUP INT TERM
    cat
    pid=$(head -n 1 "$1/$2")
    if [ -n "$pid" ] && [ "$(readlink -f "/proc/$pid/cwd")" = "$(readlink -f "$3")" ]; then
      kill -QUIT "$pid"
      for _ in $(seq 100); do [ -e "/proc/$pid/exe" ] || break; sleep 0.05; done
      kill -KILL "$pid"
    fi
    rm -rf "$1"
    """
}
