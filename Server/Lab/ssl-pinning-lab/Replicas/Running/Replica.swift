import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport

/// A real `ssl-pinning up` in a directory of its own, with its log in a file.
final class Replica: Sendable {
  let number: Int
  private let program: String
  private let directory: TemporaryDirectory
  private let backstop: ServerGuard
  private let process = Locked<ChildProcess?>(nil)
  private let listening = Locked<UInt16>(0)

  /// - Parameters:
  ///   - key: signs, the same for all replicas.
  ///   - files: by name, the configuration `config.yaml` among them.
  init(_ number: Int, program: String, key: SigningKey, files: [String: String]) throws {
    (self.number, self.program) = (number, program)
    directory = try TemporaryDirectory()
    for (name, text) in files { try directory.write(text, to: name) }
    try directory.write("", to: "log")
    try key.write(to: directory.file("tls/prv.pem"))
    backstop = try ServerGuard(directory: directory, pidFile: "pid", workingDirectory: "")
  }

  var log: String { directory.path("log") }
  var port: UInt16 { listening.withLock { $0 } }
  var pid: Int32 { process.withLock { $0?.processIdentifier ?? 0 } }

  /// Starts it, and returns when it listens.
  func launch() async throws {
    let started = try ChildProcess(
      "/bin/sh",
      ["-c", "exec \"$0\" \"$@\" 2>>log", program, "up", "--config-file", "config.yaml"],
      directory: directory.url)
    try directory.write("\(started.processIdentifier)\n", to: "pid")
    process.withLock { $0 = started }
    try await started.waitForOutput(containing: "\n")
    guard let port = started.stdout.split(separator: ":").last.map({ $0.prefix { $0.isNumber } }),
      let port = UInt16(port)
    else { throw Inconclusive("replica \(number) does not say where it listens") }
    listening.withLock { $0 = port }
  }

  /// Ends it with a signal, and waits for the end.
  ///
  /// - Returns: its exit status.
  @discardableResult
  func end(_ signal: Int32) async throws -> Int32 {
    guard let running = process.withLock({ $0.take() }) else { return 0 }
    return try await running.terminate(signal: signal, seconds: 60).exitCode
  }

  /// The last lines of its log.
  var lastWords: String {
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(20).joined(separator: "\n")
  }
}
