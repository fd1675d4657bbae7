import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport

/// Registry servers as real processes, `ssl-pinning up`, on one store, so that they can be killed.
///
/// - They and the devices use the machine's clock.
/// - They end with the drill, however that ends.
final class LiveProcesses: Sendable {
  let keys: LiveKeys
  private let stage: Environment
  private let site: Site
  private let configuration: String
  private let wire: SwitchableRelay
  /// Apps use the first one.
  private let servers = Locked<[Server]>([])

  private struct Server {
    let process: ChildProcess
    let port: UInt16
    let backstop: ServerGuard
  }

  /// - Parameters:
  ///   - authorities: CAs that the servers trust besides the stage's.
  ///   - settings: more of `tls`, in YAML.
  ///   - sections: more of the configuration.
  init(
    _ stage: Environment, watching site: Site, believing authorities: [CertificateAuthority] = [],
    tls settings: String = "", _ sections: String = ""
  ) async throws {
    (self.stage, self.site) = (stage, site)
    let directory = try stage.makeDirectory()
    func path(_ file: String) -> String {
      directory.appending(path: file).path(percentEncoded: false)
    }
    keys = try await LiveKeys(in: directory)
    configuration = path("config.yaml")
    try ([stage.authority] + authorities).map(\.root.pem).joined()
      .write(toFile: path("ca.pem"), atomically: true, encoding: .utf8)
    try """
    keys:
      - {fqdn: \(site.host), domainName: \(site.host), file: \(LiveRegistry.file),
         port: \(site.server.port), address: 127.0.0.1}
    storage: {type: sqlite, dsn: \(path("registry.db"))}
    tls: {dir: \(path("tls")), anchors: \(path("ca.pem"))\(settings)}
    \(sections)
    """.write(toFile: configuration, atomically: true, encoding: .utf8)
    // It leads nowhere until a server listens.
    wire = try SwitchableRelay(to: .loopback(9))
  }

  /// Starts another server; the first one leads.
  func start() async throws {
    let home = try TemporaryDirectory()
    let process = try SslPinningTool.start(
      ["up", "--config-file", configuration, "--listen", "127.0.0.1:0"], in: home)
    let backstop = try ServerGuard(directory: home, pidFile: "pid", workingDirectory: "")
    let marker = "listening on http://127.0.0.1:"
    try await process.waitForOutput(containing: marker)
    try await process.waitForOutput(containing: "\n")
    guard
      let line = process.stdout.split(separator: "\n").first(where: { $0.hasPrefix(marker) }),
      let port = UInt16(line.dropFirst(marker.count))
    else { throw Inconclusive("ssl-pinning up says \"\(process.stdout)\"") }
    servers.withLock { $0.append(Server(process: process, port: port, backstop: backstop)) }
    try leadWire()
  }

  /// Kills the first server without giving it time to clean up.
  func kill() async throws {
    guard let server = servers.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
    _ = try await server.process.terminate(signal: SIGKILL)
    try leadWire()
  }

  /// Makes the first server read its files again.
  func hangUp() { servers.withLock(\.first)?.process.send(SIGHUP) }

  /// Replaces the servers' `prv.pem`, and keeps the old key beside it.
  ///
  /// - Returns: the new key's id.
  func replaceSigningKey() throws -> SPKIPin {
    let directory = keys.directory
    try FileManager.default.moveItem(
      at: directory.appending(path: "prv.pem"), to: directory.appending(path: "prv.old.pem"))
    try FileManager.default.removeItem(at: directory.appending(path: "pub.pem"))
    let key = try SigningKey.generate(bits: 2048)
    try key.write(to: directory.appending(path: "prv.pem"))
    try key.writePublicKey(to: directory.appending(path: "pub.pem"))
    return key.trustKey.roleKey.id
  }

  /// Makes the store expect the key with this id.
  func adopt(_ id: SPKIPin) async throws {
    try await SslPinningTool.run(["keys", "adopt", id.base64, "--config-file", configuration])
  }

  /// Waits until the first server leads and has a document.
  func lead() async throws {
    let person = try await administrator()
    for _ in 0..<500 {
      let overview = try await person.must("GET", "/overview")
      let document = overview["documents"]?.arrayValue?.first?.objectValue
      if overview["leader"] == .bool(true), document?["published"]?.objectValue != nil { return }
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    throw Inconclusive("nobody leads")
  }

  /// Where the list is, and the configuration, for the operator's tool.
  var list: String { "http://127.0.0.1:\(wire.port)/api/v1/\(LiveRegistry.file)" }
  var configurationFile: String { configuration }

  /// An administrator with a token.
  func administrator() async throws -> LiveAdministrator {
    let token = try await SslPinningTool.run(["token", "--config-file", configuration])
    return LiveAdministrator(
      server: "http://127.0.0.1:\(wire.port)",
      token: token.trimmingCharacters(in: .whitespacesAndNewlines)
    ) { [port = site.server.port] in "\($0):\(port) at 127.0.0.1" }
  }

  /// Starts an app with the root key, on its own device.
  ///
  /// - Parameter authorities: CAs that it trusts besides the stage's.
  func startApp(believing authorities: [CertificateAuthority] = []) async throws -> App {
    var config = stage.config()
    config.trust = stage.trust(authorities)
    config.endpointUrl = list
    config.rootKeys = [keys.shippedRoot]
    config.storage = .directory(try stage.makeDirectory())
    return App(try await SslPinningClient(config: config))
  }

  private func leadWire() throws {
    wire.redirect(to: .loopback(servers.withLock(\.first)?.port ?? 9))
  }
}
