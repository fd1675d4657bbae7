import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport

/// Everything that runs during the drill: database and network, endpoints, replicas, readers.
final class ReplicaStage: Sendable {
  let network: any DatabaseNetwork
  let replicas: [Replica]
  let readers: [DocumentReader]
  let rotator: KeyRotator
  let book: AnswerBook
  let logs: LogTail
  private let steady: Nginx
  private let backstop: ServerGuard

  /// The documents that rotating keys are published in.
  static let files = ["a.json", "b.json", "c.json"]
  /// The document of the endpoints that never change.
  static let steadyFile = "steady.json"
  private static let rotating = 12

  /// How many endpoints never change. Without them the server would take the rotations for somebody
  /// who stands between it and everything, and hold the keys back for a person.
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

  /// Sets everything up. Nobody serves or rotates yet.
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

  /// Starts a replica, and has it read.
  func launch(_ number: Int) async throws {
    try await replicas[number].launch()
    readers[number].aim(at: replicas[number].port)
  }

  /// Kills a replica, as the loss of its machine does.
  func kill(_ number: Int) async throws {
    readers[number].aim(at: nil)
    let replica = replicas[number]
    Foundation.kill(replica.pid, SIGKILL)
    logs.killed(number)
    try await replica.end(SIGKILL)
  }

  /// Ends and removes everything. For whatever is left after the drill.
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
      tls: {dir: tls, anchors: ca.pem, dump_interval: 1s, probes: 3, confirmation_interval: 200ms}
      keys:
      \((rotating + others).joined(separator: "\n"))

      """
  }
}
