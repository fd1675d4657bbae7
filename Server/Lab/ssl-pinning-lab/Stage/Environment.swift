import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Everything that a row puts on loopback. Nothing is shared between rows.
final class Environment: Sendable {
  static let host = "shop.localhost"

  let timeline = Timeline()
  /// Issues the servers' certificates, and the attackers': clients trust its root.
  let authority: CertificateAuthority
  let registry: DrillRegistry
  private let directory: URL

  /// The key of the root above ``authority``.
  let rootKey: PrivateKey

  init() throws {
    rootKey = try .generate(.p256)
    authority = try CertificateAuthority.makeRoot(
      name: "Drill root", key: rootKey,
      validity: Self.validity(timeline.world, from: -3650, to: 3650)
    ).issueIntermediate(
      name: "Drill intermediate", validity: Self.validity(timeline.world, from: -1825, to: 1825))
    registry = try DrillRegistry(timeline)
    directory = FileManager.default.temporaryDirectory
      .appending(path: "drill-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  /// A directory for a server's files; gone with the stage.
  func makeDirectory() throws -> URL {
    let made = directory.appending(path: UUID().uuidString, directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return made
  }

  /// A span of days around a time.
  static func validity(_ now: Int64, from: Int64, to: Int64) -> Validity {
    Validity(notBefore: now + from * Timeline.day, notAfter: now + to * Timeline.day)
  }

  /// A certificate that the clients' CA vouches for: 30 days old, and good for another 335.
  func issue(
    _ names: String..., key: PrivateKey? = nil, by authority: CertificateAuthority? = nil,
    from: Int64 = -30, to: Int64 = 335
  ) throws -> ServerIdentity {
    try (authority ?? self.authority).issue(
      names: names, key: try key ?? .generate(.p256),
      validity: Self.validity(timeline.world, from: from, to: to))
  }

  /// A site whose key the registry lists in its next document.
  func site(_ host: String = Environment.host) throws -> Site { try Site(host, issue(host)) }

  var trust: TrustMode { .anchors([authority.root.der]) }

  /// Where an app on this stage keeps its registry.
  var storage: RegistryStorage { .directory(directory) }

  /// Rewrites the files that apps have stored, as somebody with the device in hand can.
  func rewriteStorage(_ change: (String) throws -> String) throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: directory, includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "json" }
    var changes = 0
    for file in files {
      let old = try String(contentsOf: file, encoding: .utf8)
      let new = try change(old)
      if new != old { changes += 1 }
      try Data(new.utf8).write(to: file)
    }
    try show(changes > 0, "nothing that is stored was changed")
  }

  func config() -> SslPinningConfig {
    SslPinningConfig(
      endpointUrl: registry.url, rootKeys: [registry.root.publicKeyPEM], threshold: 1,
      trust: trust, storage: storage)
  }

  /// Starts an app, which finds what an earlier start has stored.
  ///
  /// - Parameter document: handed over at the start.
  func start(
    accepting document: [UInt8]? = nil, _ adjust: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws(SslPinningError) -> App {
    var config = config()
    adjust(&config)
    return App(
      try await SslPinningClient(
        config: config, accepting: document.map { Data($0) }, clocks: timeline.clocks()))
  }
}
