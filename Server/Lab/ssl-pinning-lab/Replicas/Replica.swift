import CanonicalJSON
import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport

/// A real `ssl-pinning up` process in its own directory, with its log in a file.
final class Replica: Sendable {
  let number: Int
  private let program: String
  private let directory: TemporaryDirectory
  private let backstop: ServerGuard
  private let process = Locked<ChildProcess?>(nil)
  private let listening = Locked<UInt16>(0)

  /// - Parameters:
  ///   - key: the signing key, the same for all replicas.
  ///   - files: files by name, including the configuration `config.yaml`.
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

  /// Starts the process, and returns when it listens.
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

  /// Sends a signal, and waits for the process to end.
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

/// Follows the logs of all replicas and notes which one leads. Times are those of reading, a few
/// milliseconds late.
final class LogTail: Sendable {
  private struct Log {
    let replica: Int
    let path: String
    var offset: UInt64 = 0
  }

  private let timeline = Locked(LeaderTimeline())
  private let isOver = Locked(false)

  /// - Parameter paths: the logs, replica by replica.
  init(_ paths: [String]) {
    let logs = paths.enumerated().map { Log(replica: $0.offset, path: $0.element) }
    let thread = Thread { [self] in
      var logs = logs
      while !isOver.withLock({ $0 }) {
        read(&logs)
        usleep(3000)
      }
    }
    thread.name = "logs"
    thread.start()
  }

  var leaders: LeaderTimeline { timeline.withLock { $0 } }

  /// Notes that a process was killed, which its log does not say.
  func killed(_ replica: Int) {
    timeline.withLock { $0.enter(.ended, of: replica, at: .now) }
  }

  func stop() { isOver.withLock { $0 = true } }

  private func read(_ logs: inout [Log]) {
    var events: [(LeaderTimeline.Event, Int)] = []
    for index in logs.indices {
      for line in Self.newLines(&logs[index]) {
        switch (try? JSONValue(parsing: line))?.objectValue?["event"]?.stringValue {
        case "leading": events.append((.began, logs[index].replica))
        case "not_leading": events.append((.ended, logs[index].replica))
        default: break
        }
      }
    }
    let time = ContinuousClock.now
    // The order of new lines in different logs is unknown; take the ends of leading first.
    events.sort { $0.0 == .ended && $1.0 == .began }
    timeline.withLock { timeline in
      for (event, replica) in events { timeline.enter(event, of: replica, at: time) }
    }
  }

  private static func newLines(_ log: inout Log) -> [[UInt8]] {
    guard let file = try? FileHandle(forReadingFrom: URL(filePath: log.path)) else { return [] }
    defer { try? file.close() }
    guard (try? file.seek(toOffset: log.offset)) != nil, let data = try? file.readToEnd(),
      let end = data.lastIndex(of: 0x0a)
    else { return [] }
    let lines = data[...end]
    log.offset += UInt64(lines.count)
    return lines.split(separator: 0x0a).map { Array($0) }
  }
}

/// Everything that runs during the drill: database, network, endpoints, replicas and readers.
final class ReplicaStage: Sendable {
  let network: any DatabaseNetwork
  let replicas: [Replica]
  let readers: [DocumentReader]
  let rotator: KeyRotator
  let book: AnswerBook
  let logs: LogTail
  private let steady: Nginx
  private let backstop: ServerGuard

  /// The documents in which rotating keys are published.
  static let files = ["a.json", "b.json", "c.json"]
  /// The document of the endpoints that never change.
  static let steadyFile = "steady.json"
  private static let rotating = 12

  /// How many endpoints never change. Without them, the rotations would look like a mass change, and the
  /// server would hold the keys for a person.
  private static func steadyCount(_ options: ReplicasOptions) -> Int { options.isQuick ? 160 : 400 }

  private init(
    network: any DatabaseNetwork, replicas: [Replica], readers: [DocumentReader],
    rotator: KeyRotator, book: AnswerBook, steady: Nginx
  ) throws {
    backstop = try ServerGuard(
      directory: steady.directory, pidFile: "nginx.pid", workingDirectory: "")
    (self.network, self.replicas, self.readers) = (network, replicas, readers)
    (self.rotator, self.book, self.steady) = (rotator, book, steady)
    logs = LogTail(replicas.map(\.log))
  }

  /// Sets everything up. Nothing serves or rotates yet.
  static func prepare(_ options: ReplicasOptions, program: String) async throws -> ReplicaStage {
    let network = try await makeNetwork(options)
    do {
      let root = try CertificateAuthority.makeRoot(name: "Drill root")
      let authority = try root.issueIntermediate(name: "Drill intermediate")
      let key = try SigningKey.generate(bits: 2048)
      let book = AnswerBook(key: try VerificationKey(key.publicKeyPEM)) {
        Int64(Date().timeIntervalSince1970)
      }
      let endpoints = try (0..<rotating).map {
        try RotatingEndpoint(
          "r\($0).drill.test", file: files[$0 % files.count], authority: authority)
      }
      let port = try freePort()
      let names = (0..<steadyCount(options)).map { "s\($0).drill.test" }
      let steady = try await Nginx.start(
        names.map { try .init(authority.issue(names: [$0]), name: $0, port: port) })
      let replicas = try (0..<options.replicas).map { number in
        try Replica(
          number, program: program, key: key,
          files: [
            "tls/pub.pem": key.publicKeyPEM, "ca.pem": root.root.pem,
            "config.yaml": configuration(
              network.dsn(forReplica: number), endpoints, steady: names, port),
          ])
      }
      let readers = replicas.map { DocumentReader(of: $0.number, files: files, book: book) }
      return try ReplicaStage(
        network: network, replicas: replicas, readers: readers,
        rotator: KeyRotator(endpoints, book: book), book: book, steady: steady)
    } catch {
      try await network.stop()
      throw error
    }
  }

  /// Starts a replica and its reader.
  func launch(_ number: Int) async throws {
    try await replicas[number].launch()
    readers[number].aim(at: replicas[number].port)
  }

  /// Kills a replica, like the loss of its machine.
  func kill(_ number: Int) async throws {
    readers[number].aim(at: nil)
    let replica = replicas[number]
    Foundation.kill(replica.pid, SIGKILL)
    logs.killed(number)
    try await replica.end(SIGKILL)
  }

  /// Stops and removes whatever is left after the drill.
  func stop() async throws {
    await rotator.stop()
    for reader in readers { reader.aim(at: nil) }
    for reader in readers { await reader.stop() }
    for replica in replicas { _ = try? await replica.end(SIGKILL) }
    logs.stop()
    for endpoint in rotator.endpoints { endpoint.server.stop() }
    try? await steady.stop()
    try await network.stop()
  }

  private static func makeNetwork(_ options: ReplicasOptions) async throws -> any DatabaseNetwork {
    guard !options.hasForwarders else {
      return try await ForwarderNetwork(replicas: options.replicas, reason: "not wanted")
    }
    do { return try await NamespaceNetwork.start(replicas: options.replicas) } catch let error
      as NoNamespaces
    {
      return try await ForwarderNetwork(replicas: options.replicas, reason: error.reason)
    }
  }

  private static func configuration(
    _ dsn: String, _ endpoints: [RotatingEndpoint], steady: [String], _ port: UInt16
  ) -> String {
    let rotating = endpoints.map { endpoint in
      "  - {fqdn: \(endpoint.host), domainName: \(endpoint.host), address: 127.0.0.1,"
        + " port: \(endpoint.server.port), file: \(endpoint.file)}"
    }
    let others = steady.map { name in
      "  - {fqdn: \(name), domainName: \(name), address: 127.0.0.1, port: \(port),"
        + " file: \(steadyFile), interval: 10s}"
    }
    return """
      server: {listen: "127.0.0.1:0"}
      storage: {type: postgres, dsn: "\(dsn)", insecure: true}
      tls: {dir: tls, anchors: ca.pem, dump_interval: 1s, confirmations: 3, confirmation_interval: 200ms}
      keys:
      \((rotating + others).joined(separator: "\n"))

      """
  }
}
