import CanonicalJSON
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// All that the drill of renewals runs: an ACME server, machines with certificates, and a registry that watches them.
final class AcmeStage: Sendable {
  let machines: [AcmeMachine]
  private let place: AcmePlace
  private let server: AcmeServer
  private let keys: LiveKeys
  private let port: UInt16
  private let registry = Locked<ChildProcess?>(nil)

  private var address: String { "http://127.0.0.1:\(port)" }
  private var list: String { "\(address)/api/v1/\(LiveRegistry.file)" }
  private var configuration: String { place.path("config.yaml") }

  init(_ options: AcmeOptions) async throws {
    let hook = URL(filePath: options.hook).standardizedFileURL.path(percentEncoded: false)
    guard FileManager.default.isExecutableFile(atPath: hook) else {
      throw Inconclusive("no program \(hook); hint: --hook packaging/announce-renewed")
    }
    place = try AcmePlace()
    server = try await AcmeServer(in: place)
    keys = try await LiveKeys(in: URL(filePath: place.path(), directoryHint: .isDirectory))
    port = try freePort()
    let (place, server) = (place, server)
    machines = try (0..<options.machines).map { machine in
      try AcmeMachine(
        machine, names: (0..<options.names).map { "host\($0).machine\(machine).localhost" },
        in: place, by: options.client, from: server, hook: hook)
    }
    try configure()
    try place.write(keys.shippedRoot, to: "root.pem")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, machine) in machines.enumerated() {
        group.addTask { [self] in
          try await machine.setUp(announcing: try await announcing(number, machine))
        }
      }
      try await group.waitForAll()
    }
    try await startRegistry()
  }

  /// Probes come often, so that the drill does not wait for them; all else is the default.
  private func configure() throws {
    try place.write(server.root.pem, to: "anchors.pem")
    let endpoints = machines.flatMap { machine in
      machine.names.map {
        "  - {fqdn: \($0), domainName: \($0), file: \(LiveRegistry.file), port: \(machine.port), address: 127.0.0.1}\n"
      }
    }
    try place.write(
      """
      keys:
      \(endpoints.joined())
      server: {listen: "127.0.0.1:\(port)"}
      storage: {type: sqlite, dsn: \(place.path("registry.db"))}
      tls: {dir: \(place.path("tls")), anchors: \(place.path("anchors.pem")), dump_interval: 3s,
        confirmation_interval: 1s}

      """, to: "config.yaml")
  }

  /// The options of `announce` on a machine, whose token is for its own names alone.
  private func announcing(_ number: Int, _ machine: AcmeMachine) async throws -> [String] {
    let token = try await SslPinningTool.run(
      ["token", "--config-file", configuration, "--scope", "stage"]
        + machine.names.flatMap { ["--host", $0] })
    return [
      "--file", LiveRegistry.file, "--endpoint", "NAME:\(machine.port) at 127.0.0.1", "--list",
      list, "--root-key", place.path("root.pem"), "--server", address, "--token-file",
      try place.write(token, to: "m\(number)/token"), "--settle", "\(AcmeCrowd.settle)",
      "--patience", "1",
    ]
  }

  /// Starts the registry, and returns when it lists a key of every name.
  func startRegistry() async throws {
    let started = try place.start(["ssl-pinning", "up", "--config-file", configuration])
    registry.withLock { $0 = started }
    try await started.waitForOutput(containing: "listening on ")
    let person = try await administrator
    for _ in 0..<600 {
      let documents = try await person.must("GET", "/overview")["documents"]?.arrayValue
      if documents?.first?.objectValue?["published"]?.objectValue != nil { return }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw Inconclusive("nothing is published: \(started.stderr.suffix(2000))")
  }

  /// Kills the registry without giving it time to clean up.
  func killRegistry() async throws {
    _ = try await registry.withLock { $0.take() }?.terminate(signal: SIGKILL)
  }

  func stop() async throws {
    for machine in machines { try await machine.stop() }
    _ = try await registry.withLock { $0.take() }?.terminate()
  }

  /// An administrator with a token of a minute.
  var administrator: LiveAdministrator {
    get async throws {
      let token = try await SslPinningTool.run(["token", "--config-file", configuration])
      return LiveAdministrator(
        server: address, token: token.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }

  /// Starts an app with the root key, on its own device.
  func startApp() async throws -> App {
    var config = SslPinningConfig(
      endpointUrl: list, rootKeys: [keys.shippedRoot], threshold: 1,
      trust: .anchors([server.root.der]),
      storage: .directory(
        URL(filePath: place.path("app-\(UUID().uuidString)"), directoryHint: .isDirectory)))
    config.fetchTimeout = 5
    return App(try await SslPinningClient(config: config))
  }

  /// Where the key of each name is that is served.
  var served: [String?] { machines.flatMap { machine in machine.names.map(machine.served) } }

  /// How many announcements are not over.
  var waiting: Int { machines.map(\.waiting).reduce(0, +) }

  /// How many announced keys no probe has seen.
  func staged() async throws -> Int64 {
    let documents = try await administrator.must("GET", "/overview")["documents"]?.arrayValue
    let counts = documents?.first?.objectValue?["counts"]?.objectValue
    guard let staged = counts?["staged"]?.integerValue else {
      throw Inconclusive("the overview counts no staged keys")
    }
    return staged
  }

  /// The events of the whole history.
  func history() async throws -> [String] {
    let answer = try await SslPinningTool.run([
      "admin", "history", "--file", LiveRegistry.file, "--limit", "1000000", "--json", "--server",
      address, "--config-file", configuration,
    ])
    let entries = try JSONValue(parsing: [UInt8](answer.utf8)).objectValue?["entries"]?.arrayValue
    return entries?.compactMap { $0.objectValue?["event"]?.stringValue } ?? []
  }
}
