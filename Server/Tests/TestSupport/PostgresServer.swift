import Foundation

/// Debian's PostgreSQL as the real database of a test: on a free port of 127.0.0.1, in a temporary
/// directory, with `fsync` on, ended by process id.
///
/// As root it runs as the user `postgres`, since it refuses to run as root.
public final class PostgresServer: Sendable {
  /// The owner of every database, and the password.
  public static let user = "tester"
  public static let password = "not:a secret@all/"

  /// One for all tests of a process. It stays up until the process ends.
  public static let shared = Task { try await PostgresServer.start() }

  public let port: UInt16
  private let place: ServerPlace
  private let directory: TemporaryDirectory
  private let backstop: ServerGuard
  private let process = Slot<ChildProcess>()
  private let nextDatabase = Slot<Int>()

  private init(port: UInt16, place: ServerPlace, directory: TemporaryDirectory) throws {
    self.port = port
    self.place = place
    self.directory = directory
    backstop = try ServerGuard(
      directory: directory, pidFile: "data/postmaster.pid", workingDirectory: "data")
  }

  /// Makes an empty cluster and starts its server.
  public static func start(at place: ServerPlace = ServerPlace()) async throws -> PostgresServer {
    let directory = try TemporaryDirectory()
    try directory.write(password + "\n", to: "password")
    if getuid() == 0 {
      try await succeed("chown", ["-R", "postgres", directory.path()])
    }
    let initdb = asOwner(
      "initdb",
      [
        "-D", directory.path("data"), "-U", user, "-A", "scram-sha-256", "--no-sync",
        "--pwfile", directory.path("password"), "--locale=C", "-E", "UTF8",
      ])
    try await succeed(initdb[0], Array(initdb.dropFirst()))
    let neighbours = "host all all samenet scram-sha-256\n"
    let access = try FileHandle(forWritingTo: directory.file("data/pg_hba.conf"))
    try access.seekToEnd()
    try access.write(contentsOf: Data(neighbours.utf8))
    try access.close()
    let server = try PostgresServer(port: freePort(), place: place, directory: directory)
    try await server.launch()
    return server
  }

  /// The URL of a database.
  ///
  /// - Parameter address: one of those that it listens on; `nil`: the first.
  public func dsn(_ database: String = "postgres", at address: String? = nil) -> String {
    let host = address ?? self.host
    let password = Self.password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    return "postgres://\(Self.user):\(password)@\(host):\(port)/\(database)?sslmode=disable"
  }

  private var host: String { place.addresses.first ?? "127.0.0.1" }

  /// Makes an empty database and returns its name.
  public func makeDatabase() async throws -> String {
    let number = nextDatabase.update { number in
      number = (number ?? 0) + 1
      return number ?? 0
    }
    let name = "test\(number)"
    try await run("CREATE DATABASE \(name)")
    return name
  }

  /// Runs SQL as an operator does, with `psql`.
  ///
  /// - Returns: what it printed, rows only.
  @discardableResult
  public func run(_ sql: String, in database: String = "postgres") async throws -> String {
    try await Self.succeed(
      Self.program("psql"),
      [
        "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", host, "-p", "\(port)", "-U",
        Self.user, "-d", database, "-c", sql,
      ], environment: ["PGPASSWORD": Self.password, "PGCONNECT_TIMEOUT": "30"])
  }

  /// Ends the server as an operator does, at once; connections are cut.
  public func stop() async throws { try await process.take()?.terminate(signal: SIGINT) }

  /// Kills the server and every process of its own at one moment, as the loss of a machine does.
  public func kill() async throws {
    guard let server = process.take() else { return }
    let pid = server.processIdentifier
    // Stopped first, so that it forks nobody meanwhile.
    server.send(SIGSTOP)
    let children =
      (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8))
    let pids = (children ?? "").split(separator: " ").compactMap { Int32($0) }
    for pid in pids { Foundation.kill(pid, SIGKILL) }
    _ = try await server.terminate(signal: SIGKILL)
    // A restart is refused as long as one of them holds the shared memory.
    _ = await eventually {
      // A process that nobody has waited for is still there, but has no program any more.
      pids.allSatisfy { access("/proc/\($0)/exe", F_OK) != 0 }
    }
  }

  /// Stops every process of the server without ending it, or lets them go on: a machine that hangs.
  public func suspend(_ isSuspended: Bool) {
    guard let pid = process.value?.processIdentifier else { return }
    let children =
      (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8))
    for pid in [pid] + (children ?? "").split(separator: " ").compactMap({ Int32($0) }) {
      Foundation.kill(pid, isSuspended ? SIGSTOP : SIGCONT)
    }
  }

  /// Starts the server on the same port and data, and waits until it answers.
  public func launch() async throws { try await launch(asStandby: false) }

  /// The same.
  ///
  /// - Parameter isStandby: whether it takes no writes, as one that waits to take over.
  public func launch(asStandby isStandby: Bool) async throws {
    if isStandby {
      try directory.write("", to: "data/standby.signal")
    } else {
      unlink(directory.path("data/standby.signal"))
    }
    let settings = [
      "listen_addresses=\(place.addresses.joined(separator: ","))", "port=\(port)",
      "unix_socket_directories=", "fsync=on",
      "max_connections=200", "shared_buffers=16MB", "log_min_messages=fatal",
      "max_prepared_transactions=4",
    ]
    let inside = place.namespace.map { ["ip", "netns", "exec", $0] } ?? []
    let command =
      inside
      + Self.asOwner(
        "postgres", ["-D", directory.path("data")] + settings.flatMap { ["-c", $0] })
    let started = try ChildProcess(
      command[0], Array(command.dropFirst()), directory: URL(filePath: "/"), lastSignal: SIGQUIT)
    process.set(started)
    let status = directory.path("data/postmaster.pid")
    let isReady = await eventually {
      guard started.isRunning, let text = try? String(contentsOfFile: status, encoding: .utf8)
      else {
        return !started.isRunning
      }
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      return lines.first == "\(started.processIdentifier)" && lines.dropFirst(7).first == "ready   "
    }
    guard isReady, started.isRunning else {
      throw ChildProcess.Failure.ended(program: "postgres", try await started.terminate())
    }
  }

  /// The newest installed version's programs, which Debian keeps out of `PATH`.
  private static func program(_ name: String) -> String {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    let newest = versions.compactMap { Int($0) }.max()
    return newest.map { "\(root)/\($0)/bin/\(name)" } ?? name
  }

  private static func asOwner(_ name: String, _ arguments: [String]) -> [String] {
    let command = [program(name)] + arguments
    guard getuid() == 0 else { return command }
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"] + command
  }

  @discardableResult
  private static func succeed(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) async throws -> String {
    let end = try await ChildProcess.run(
      program, arguments, environment: environment, directory: URL(filePath: "/"))
    guard end.exitCode == 0 else { throw ChildProcess.Failure.ended(program: program, end) }
    return end.stdout
  }
}
