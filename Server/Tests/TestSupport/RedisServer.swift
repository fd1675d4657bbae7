import Foundation

/// Debian's Redis as the real database of a test: on a free port of 127.0.0.1, in a temporary
/// directory, with a password, ended by process id. It flushes every change before it answers.
public final class RedisServer: Sendable {
  public static let password = "not:a secret@all/"

  /// One for all tests of a process. It stays up until the process ends.
  public static let shared = Task { try await RedisServer.start() }

  private static let databases = 4096

  public let port: UInt16
  private let directory: TemporaryDirectory
  private let backstop: ServerGuard
  private let process = Slot<ChildProcess>()
  private let nextDatabase = Slot<Int>()
  private let settings: [String]

  private init(settings: [String]) throws {
    port = try freePort()
    directory = try TemporaryDirectory()
    self.settings = settings
    backstop = try ServerGuard(directory: directory, pidFile: "redis.pid", workingDirectory: "")
  }

  /// Starts an empty server.
  ///
  /// - Parameter settings: in place of those that make it keep what it acknowledged.
  public static func start(
    settings: [String] = ["--appendonly", "yes", "--appendfsync", "always"]
  ) async throws -> RedisServer {
    let server = try RedisServer(settings: settings)
    try await server.launch()
    return server
  }

  /// The URL of a database.
  public func dsn(_ database: Int = 0, user: String = "") -> String {
    let password = Self.password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    return "redis://\(user):\(password)@127.0.0.1:\(port)/\(database)?maintnotifications=disabled"
  }

  /// The number of a database that nobody was given before.
  public func makeDatabase() -> Int {
    nextDatabase.update { number in
      number = (number ?? 0) + 1
      return number ?? 0
    }
  }

  /// Runs a command as an operator does, with `redis-cli`.
  @discardableResult
  public func run(_ arguments: String..., in database: Int = 0) async throws -> String {
    let end = try await ChildProcess.run(
      "redis-cli", ["-p", "\(port)", "-n", "\(database)"] + arguments,
      environment: ["REDISCLI_AUTH": Self.password])
    guard end.exitCode == 0 else { throw ChildProcess.Failure.ended(program: "redis-cli", end) }
    return end.stdout
  }

  /// Ends the server as an operator does.
  public func stop() async throws { try await process.take()?.terminate() }

  /// Kills the server.
  public func kill() async throws { _ = try await process.take()?.terminate(signal: SIGKILL) }

  /// Stops the server without ending it, or lets it go on: a machine that hangs.
  public func suspend(_ isSuspended: Bool) { process.value?.send(isSuspended ? SIGSTOP : SIGCONT) }

  /// Starts the server on the same port and data, and waits until it answers.
  public func launch() async throws {
    let started = try ChildProcess(
      "redis-server",
      [
        "--port", "\(port)", "--bind", "127.0.0.1", "--dir", directory.path(), "--save", "",
        "--pidfile", directory.path("redis.pid"), "--databases", "\(Self.databases)",
        "--requirepass", Self.password,
      ] + settings)
    process.set(started)
    try await started.waitForOutput(containing: "Ready to accept connections")
  }
}
