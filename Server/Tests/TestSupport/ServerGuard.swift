import Foundation

/// Ends a server and removes its directory once the process that started it is gone, however it
/// went.
///
/// It takes the server's number from a file, and ends it only if it works in the server's directory: by
/// then the number may be somebody else's.
public final class ServerGuard: Sendable {
  private let backstop: Backstop

  /// - Parameters:
  ///   - directory: is removed.
  ///   - pidFile: the server's number is its first line; relative to `directory`.
  ///   - workingDirectory: the server's, relative to `directory`.
  public init(directory: TemporaryDirectory, pidFile: String, workingDirectory: String) throws {
    backstop = try Backstop(
      Self.script, [directory.path(), pidFile, directory.path(workingDirectory)])
  }

  private static let script = """
    pid=$(head -n 1 "$1/$2")
    if [ -n "$pid" ] && [ "$(readlink -f "/proc/$pid/cwd")" = "$(readlink -f "$3")" ]; then
      kill -QUIT "$pid"
      for _ in $(seq 100); do [ -e "/proc/$pid/exe" ] || break; sleep 0.05; done
      kill -KILL "$pid"
    fi
    rm -rf "$1"
    """
}
