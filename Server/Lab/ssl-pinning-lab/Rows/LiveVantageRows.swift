import FaultLab
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Three vantage points of our own beside the real registry server, with a quorum of two, and attackers on the ways
/// between them all.
enum LiveVantageRows {
  static let changes: [Row] = [
    .change("registry server: new CA seen by a quorum of three vantage points") { log in
      try await live { scene, points, other in
        // One of the three is away all the while.
        points[0].server.stop()
        try await scene.get(log)
        try scene.site.rotate(to: scene.stage.issue(scene.site.host, by: other, from: -1))
        log.changed()
        try await scene.heal(log, [scene.app], within: LiveRotationRows.bound)
        let alerts = try await scene.registry.administrator.alerts()
        try show(!alerts.contains("key-held"), "alerts: \(alerts)")
      }
      return ChangeOutcome("one of them away; unannounced, published without a person", log)
    }
  ]

  static let attacks: [Row] = [
    .attack("registry server: new CA from an attacker before the server and its vantage points") {
      try await attack { scene, points, attacker in
        // He answers for the vantage points, too, but has none of their keys.
        let impostor = try InterceptingProxy.tunnelling(
          showing: scene.stage.issue("vantage.localhost")
        ) { _, _ in .loopback(attacker.port) }
        for point in points { point.way.redirect(to: .loopback(impostor.port)) }
        try await scene.intercept(by: attacker, seconds: 600)
        try await scene.mustHold(attacker, "new-issuer")
        try show(impostor.tunnels.isEmpty, "a vantage point without its key was asked")
        return
          "all ways out of the server are his: none of his vantage points can prove itself, and"
          + " his key is held for a person"
      }
    },
    .attack("registry server: new CA from an attacker before the server and one vantage point") {
      try await attack { scene, points, attacker in
        // Both agree. The other two points see the real key, and then he cuts the server's ways to them.
        points[0].lead(to: attacker.port)
        try await scene.intercept(by: attacker, seconds: 60)
        for point in points.dropFirst() { point.server.stop() }
        try await scene.intercept(by: attacker, seconds: 600)
        try await scene.mustHold(attacker, "new-issuer")
        return "one point that agrees with the server, and two that are cut off: held for a person"
      }
    },
  ]

  /// A vantage point, the server's way to it, and where names lead there.
  private struct Point {
    let server: VantageServer
    let way: SwitchableRelay
    let site: Locked<UInt16>
    let entry: VantagePoint

    func lead(to port: UInt16) { site.withLock { $0 = port } }
  }

  private static func live(
    _ body: (LiveScene, [Point], CertificateAuthority) async throws -> Void
  ) async throws {
    let stage = try Environment()
    let (site, other) = (try stage.site(), try stage.otherRoot())
    let files = try stage.makeDirectory()
    let client = try ServerIdentity.selfSigned(names: ["client"])
    let clientFiles = try client.write(to: files, name: "client")
    let points = try ["fra", "osl", "syd"].map { name in
      try point(name, for: site, client, clientFiles)
    }
    defer { for point in points { point.server.stop() } }
    try await LiveScene.run(
      on: stage, sites: [site], believing: [other], watching: points.map(\.entry)
    ) { try await body($0, points, other) }
  }

  private static func point(
    _ name: String, for site: Site, _ client: ServerIdentity, _ files: ServerIdentity.Files
  ) throws -> Point {
    let identity = try ServerIdentity.selfSigned(names: ["vantage"])
    let led = Locked(site.server.port)
    var limits = VantageServer.Limits()
    // Ten minutes of probes pass within seconds.
    limits.dials = 100_000
    let server = try VantageServer(
      on: "127.0.0.1:0", showing: identity, to: [client.pin],
      rules: VantageRules(hosts: ["\(site.host):443"], networks: ["127.0.0.0/8"]),
      limits: limits,
      resolver: NameResolver { _, _ in .success([.loopback(led.withLock { $0 })]) }, log: .silent)
    let way = try SwitchableRelay(to: .loopback(server.port))
    let entry = VantagePoint(
      name: name, host: "127.0.0.1", port: way.port,
      security: .init(
        pins: [try identity.pin], certificate: files.certificates.path(percentEncoded: false),
        privateKey: files.key.path(percentEncoded: false)))
    return Point(server: server, way: way, site: led, entry: entry)
  }

  private static func attack(
    _ body: (LiveScene, [Point], InterceptingProxy) async throws -> String
  ) async throws -> AttackOutcome {
    var outcome: AttackOutcome?
    try await live { scene, points, other in
      let attacker = try InterceptingProxy.transparent(
        upstream: .loopback(scene.site.server.port), authority: other)
      let text = try await body(scene, points, attacker)
      outcome = try AttackOutcome(text, try await scene.useKey(of: attacker))
    }
    guard let outcome else { throw Inconclusive("nothing was attacked") }
    return outcome
  }
}
