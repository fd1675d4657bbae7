import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A situation in which any HTTPS client may find itself, played on servers of loopback.
///
/// - Each is played on a stage of its own. First the client must be served as things are; then something happens,
///   and the client tries again.
/// - A change is one that its users must not notice. An attack is one whose maker must not get a byte of a request.
struct ClientScenario: Sendable {
  /// The word for it on the command line.
  let name: String
  /// One line for people.
  let what: String
  let isAttack: Bool
  /// Lets an hour pass for the client, in which it may fetch its list, and has it send one more request.
  typealias Dial = @Sendable () async throws -> Void
  /// Lets it happen.
  ///
  /// - Returns: the attacker's server, if it is an attack.
  let happen: @Sendable (ClientStage, _ dial: Dial) async throws -> LocalTLSServer?

  static func change(
    _ name: String, _ what: String,
    _ happen: @escaping @Sendable (ClientStage, _ dial: Dial) async throws -> Void
  ) -> ClientScenario {
    ClientScenario(name: name, what: what, isAttack: false) { stage, dial in
      try await happen(stage, dial)
      return nil
    }
  }

  static func attack(
    _ name: String, _ what: String,
    _ attacker: @escaping @Sendable (ClientStage, _ dial: Dial) async throws -> ServerIdentity
  ) -> ClientScenario {
    ClientScenario(name: name, what: what, isAttack: true) { stage, dial in
      let identity = try await attacker(stage, dial)
      let server = try LocalTLSServer(identity: identity) { _ in .text("stolen") }
      stage.site.lead(to: server.port)
      return server
    }
  }
}

/// What a client is pointed at: a site at `localhost`, a registry that lists its key and a backup, and the files that a
/// client is configured with.
final class ClientStage: Sendable {
  static let host = "localhost"

  let environment: Environment
  let site: Site
  /// A second root that clients trust, as they trust many.
  let otherRoot: CertificateAuthority
  /// The key that is listed besides, and that nobody shows yet.
  let backup: ServerIdentity
  /// What a client's command finds in its words.
  let values: [(name: String, value: String)]

  init() throws {
    environment = try Environment()
    otherRoot = try environment.otherRoot()
    site = try environment.site(Self.host)
    backup = try environment.issue(Self.host)
    let (identity, spare) = (site.server.identity, backup)
    try environment.registry.publish { try $0.list(Self.host, identity, spare) }
    let directory = try environment.makeDirectory()
    let (anchors, key) = (
      directory.appending(path: "ca.pem"), directory.appending(path: "registry.pem")
    )
    try (environment.authority.root.pem + otherRoot.root.pem)
      .write(to: anchors, atomically: true, encoding: .utf8)
    try environment.registry.root.publicKeyPEM.write(to: key, atomically: true, encoding: .utf8)
    let (pin, second) = (try identity.pin.base64, try backup.pin.base64)
    values = [
      ("url", try site.url().absoluteString), ("host", Self.host), ("port", "\(site.wire.port)"),
      ("ca", anchors.path(percentEncoded: false)), ("pin", pin), ("backup", second),
      ("pins", "sha256//\(pin);sha256//\(second)"),
      ("fingerprint", hex(Digest.sha256(identity.leaf.der))),
      ("registry", environment.registry.url), ("key", key.path(percentEncoded: false)),
      ("storage", try environment.makeDirectory().path(percentEncoded: false)),
    ]
  }

  /// Publishes the next document.
  func publish(_ change: (inout DrillRegistry.Book) throws -> Void) throws {
    try environment.registry.publish(change)
  }
}
