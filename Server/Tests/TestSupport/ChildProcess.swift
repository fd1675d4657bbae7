import Foundation

/// A program started by a test: its output collected while it runs, itself ended by process id.
///
/// - Both pipes are read on threads of their own from the first moment, so a full pipe never blocks
///   the child; 16 MiB per pipe are kept and the rest is counted but dropped.
/// - The last reference going kills the child: no test leaves one behind.
public final class ChildProcess: @unchecked Sendable {
  /// How the child ended.
  public struct Outcome: Sendable {
    /// The exit code, or 128 plus the signal.
    public let exitCode: Int32
    public let stdout: String
    public let stderr: String
  }

  public enum Failure: Error, CustomStringConvertible {
    case cannotStart(program: String, reason: String)
    /// It still ran (or had not said the line) when the time was up.
    case timeout(program: String, stdout: String, stderr: String)
    /// It ended before it said the line that was waited for.
    case ended(program: String, Outcome)

    public var description: String {
      switch self {
      case .cannotStart(let program, let reason): "cannot start \(program): \(reason)"
      case .timeout(let program, let out, let err):
        "\(program) took too long\nstdout: \(out)\nstderr: \(err)"
      case .ended(let program, let outcome):
        "\(program) ended with \(outcome.exitCode)\nstdout: \(outcome.stdout)\n"
          + "stderr: \(outcome.stderr)"
      }
    }
  }

  public let program: String
  private let process = Process()
  private let lastSignal: Int32
  private let output = Collector()
  private let errors = Collector()
  private let changed = NSCondition()
  private var hasEnded = false

  /// Starts a program, looked up in `PATH` unless it holds a slash.
  ///
  /// - Parameters:
  ///   - environment: added to the test's own environment.
  ///   - lastSignal: ends the child when the last reference goes. One that has children of its own
  ///     needs SIGTERM, or it leaves them behind.
  ///   - input: what the child reads on standard input before its end.
  public init(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: URL? = nil, input: [UInt8] = [], lastSignal: Int32 = SIGKILL
  ) throws {
    self.program = program
    self.lastSignal = lastSignal
    process.executableURL = try Self.find(program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment
      .merging(environment) { _, new in new }
    if let directory { process.currentDirectoryURL = directory }
    let (stdout, stderr) = (Pipe(), Pipe())
    let stdin = try Self.file(holding: input)
    process.standardInput = stdin
    (process.standardOutput, process.standardError) = (stdout, stderr)
    process.terminationHandler = { [weak self] _ in self?.noteEnd() }
    do { try Self.withSignalsOpen { try process.run() } } catch {
      throw Failure.cannotStart(program: program, reason: "\(error)")
    }
    // Foundation's Process outlives its child and would keep the file open.
    try? stdin.close()
    output.start(reading: stdout.fileHandleForReading) { [weak self] in self?.noteOutput() }
    errors.start(reading: stderr.fileHandleForReading) { [weak self] in self?.noteOutput() }
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, lastSignal) }
  }

  public var processIdentifier: Int32 { process.processIdentifier }
  public var isRunning: Bool { process.isRunning }
  /// What it wrote so far.
  public var stdout: String { output.text }
  public var stderr: String { errors.text }

  /// Runs a program to its end.
  public static func run(
    _ program: String, _ arguments: [String] = [], environment: [String: String] = [:],
    directory: URL? = nil, input: [UInt8] = [], seconds: Double = 60
  ) async throws -> Outcome {
    try await ChildProcess(
      program, arguments, environment: environment, directory: directory, input: input
    ).wait(seconds: seconds)
  }

  /// Waits for the end; kills the child and throws `timeout` when that takes too long.
  public func wait(seconds: Double = 60) async throws -> Outcome {
    try await offTheCooperativePool { [self] in
      guard holds(withinSeconds: seconds, until: { [self] in hasEnded }) else {
        kill(process.processIdentifier, SIGKILL)
        throw Failure.timeout(program: program, stdout: stdout, stderr: stderr)
      }
      return outcome()
    }
  }

  /// Waits until standard output or standard error holds `text`.
  public func waitForOutput(containing text: String, seconds: Double = 60) async throws {
    try await offTheCooperativePool { [self] in
      let said = { [self] in stdout.contains(text) || stderr.contains(text) }
      guard holds(withinSeconds: seconds, until: { [self] in said() || hasEnded }) else {
        throw Failure.timeout(program: program, stdout: stdout, stderr: stderr)
      }
      if hasEnded {
        let outcome = outcome()
        if !said() { throw Failure.ended(program: program, outcome) }
      }
    }
  }

  /// Sends a signal and waits for nothing.
  public func send(_ signal: Int32) {
    if process.isRunning { kill(process.processIdentifier, signal) }
  }

  /// Sends SIGTERM (or another signal) and waits for the end; kills after `seconds`.
  @discardableResult
  public func terminate(signal: Int32 = SIGTERM, seconds: Double = 10) async throws -> Outcome {
    if process.isRunning { kill(process.processIdentifier, signal) }
    return try await wait(seconds: seconds)
  }

  private func outcome() -> Outcome {
    // The pipes end with the child, unless a grandchild still holds them: wait a moment, not forever.
    output.waitForEnd(seconds: 2)
    errors.waitForEnd(seconds: 2)
    let code = process.terminationStatus
    return Outcome(
      exitCode: process.terminationReason == .exit ? code : 128 + code, stdout: stdout,
      stderr: stderr)
  }

  private func noteEnd() {
    changed.withLock { hasEnded = true }
    changed.broadcast()
  }

  private func noteOutput() {
    changed.withLock {}
    changed.broadcast()
  }

  private func holds(withinSeconds seconds: Double, until condition: () -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    return changed.withLock {
      while !condition() {
        if !changed.wait(until: deadline) { return condition() }
      }
      return true
    }
  }

  /// Threads of the cooperative pool block most signals, and a child inherits that: SIGTERM would
  /// never reach it.
  private static func withSignalsOpen(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }

  /// A nameless file: unlike a pipe it takes any length at once, and a child that ends without
  /// reading raises no SIGPIPE here.
  private static func file(holding bytes: [UInt8]) throws -> FileHandle {
    let directory = try TemporaryDirectory()
    return try FileHandle(forReadingFrom: directory.write(bytes, to: "stdin"))
  }

  private static func find(_ program: String) throws -> URL {
    if program.contains("/") { return URL(filePath: program) }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"] {
      let candidate = folder + "/" + program
      if FileManager.default.isExecutableFile(atPath: candidate) {
        return URL(filePath: candidate)
      }
    }
    throw Failure.cannotStart(program: program, reason: "not found in PATH")
  }
}
