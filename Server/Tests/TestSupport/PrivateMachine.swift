import Foundation

/// A machine of a test's own, as far as programs on it can tell: mounts, network and processes are
/// private to it (`unshare`), all ports are free, and the only address is loopback's.
///
/// - Files are those of the real machine, but for the ``disk`` and what the set-up mounts over them.
///   Nothing that happens here is seen outside, and nothing of it needs tidying up.
/// - All of it is gone, processes and mounts, when its first process ends. That one dies with
///   `unshare`, which the last reference going kills, or a ``ServerGuard`` where the tests were killed.
/// - Root makes one outright. Everybody else may be root in it, where the system allows that at all.
public final class PrivateMachine: Sendable {
  /// Whether this system lets the tests make one.
  public static let isPermitted = Task {
    let tried = try? await ChildProcess.run(
      "unshare", unshare + ["mount", "-t", "tmpfs", "x", "/mnt"])
    return tried?.exitCode == 0
  }

  /// The input of the set-up, on the real machine: the working directory of everything that runs.
  public let directory: TemporaryDirectory
  private let backstop: ServerGuard
  private let unshared: ChildProcess

  /// The number that the first process has outside.
  private let first: Int32

  /// Makes a machine.
  ///
  /// - Parameters:
  ///   - folders: are there, empty and writable, whatever the real machine has in their place.
  ///   - script: what else to set up, in bash.
  public static func start(
    in directory: TemporaryDirectory, folders: [String], script: String
  ) async throws -> PrivateMachine {
    try directory.write(setUp + script + "\necho ready\nexec sleep infinity\n", to: "setup.sh")
    // Databases run as users of their own, and come by here.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o711], ofItemAtPath: directory.path())
    let backstop = try ServerGuard(directory: directory, pidFile: "pid", workingDirectory: "")
    let unshared = try ChildProcess(
      "sh",
      ["-c", "echo $$ >pid; exec unshare \"$@\"", "sh"] + unshare + ["bash", "setup.sh"] + folders,
      directory: directory.url)
    try await unshared.waitForOutput(containing: "ready\n")
    guard let first = child(of: unshared) else {
      throw ChildProcess.Failure.ended(program: "unshare", try await unshared.wait(seconds: 5))
    }
    return PrivateMachine(directory, backstop, unshared, first: first)
  }

  private init(
    _ directory: TemporaryDirectory, _ backstop: ServerGuard, _ unshared: ChildProcess, first: Int32
  ) {
    (self.directory, self.backstop, self.unshared) = (directory, backstop, unshared)
    self.first = first
  }

  /// A directory that is empty at first, in memory, and anybody's to write.
  public var disk: String { directory.path("disk") }

  /// Starts a program. ``terminate(_:signal:)`` ends it, and so does the end of the machine.
  public func start(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> ChildProcess {
    var enter = ["--target", "\(first)", "--mount", "--net", "--ipc", "--pid"]
    if getuid() != 0 { enter += ["--user", "--preserve-credentials"] }
    return try ChildProcess(
      "nsenter", enter + ["env", "--chdir", directory.path(), program] + arguments,
      environment: environment)
  }

  /// Runs a program to its end.
  public func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) async throws -> ChildProcess.Outcome {
    try await start(program, arguments, environment: environment).wait()
  }

  /// Signals a program that ``start(_:_:environment:)`` started, and waits for its end.
  @discardableResult
  public func terminate(
    _ process: ChildProcess, signal: Int32 = SIGTERM
  ) async throws -> ChildProcess.Outcome {
    if let child = Self.child(of: process) { kill(child, signal) }
    return try await process.wait(seconds: 30)
  }

  /// Ends everything that runs here.
  ///
  /// - Returns: whether it is gone.
  public func stop() async throws -> Bool {
    try await unshared.terminate(signal: SIGKILL)
    return await eventually { [first] in access("/proc/\(first)/exe", F_OK) != 0 }
  }

  /// `nsenter` and `unshare` have one child, and pass on its end but no signal.
  private static func child(of process: ChildProcess) -> Int32? {
    let pid = process.processIdentifier
    let text = try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)
    return (text ?? "").split(separator: " ").first.flatMap { Int32($0) }
  }

  private static var unshare: [String] {
    // `--mount-proc`: threads of Swift programs look themselves up in /proc.
    (getuid() == 0 ? [] : ["--map-root-user"])
      + ["--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
  }

  /// A folder that is missing cannot be mounted over, and its parent is not to be written to. So
  /// something else is mounted over the parent: a directory in memory, of links to all that it has.
  private static let setUp = """
    set -eu
    ip link set lo up
    mkdir disk
    mount -t tmpfs -o mode=1777 tmpfs disk
    for folder in "$@"; do
      mkdir -p "disk/folders$folder"
      if [ -d "$folder" ]; then
        mount --bind "disk/folders$folder" "$folder"
        continue
      fi
      parent=$(dirname "$folder")
      mkdir -p "disk/real$parent"
      mount --rbind "$parent" "disk/real$parent"
      # A relative link leads elsewhere through a link.
      find "$PWD/disk/real$parent" -mindepth 1 -maxdepth 1 '(' -type l -exec cp -P -t "disk/folders$parent" {} + -o \
        -exec ln -s -t "disk/folders$parent" {} + ')'
      mount --bind "disk/folders$parent" "$parent"
    done

    """
}
