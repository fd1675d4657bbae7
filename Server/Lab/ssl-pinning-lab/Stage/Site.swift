import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A host of the app's: its server, and a wire to it that can be led to an attacker.
///
/// - The body names the key that the server has, so a body proves which one answered.
final class Site: Sendable {
  let host: String
  let server: LocalTLSServer
  let wire: SwitchableRelay
  private let shown: Locked<String>

  init(_ host: String, _ identity: ServerIdentity) throws {
    self.host = host
    let shown = Locked(try Self.body(host, identity))
    self.shown = shown
    server = try LocalTLSServer(identity: identity) { _ in .text(shown.withLock { $0 }) }
    wire = try SwitchableRelay(to: .loopback(server.port))
  }

  /// What clients dial.
  func url(_ path: String = "/account") throws -> URL { try Self.url(host, wire.port, path) }

  static func url(_ host: String, _ port: UInt16, _ path: String = "/account") throws -> URL {
    guard let url = URL(string: "https://\(host):\(port)\(path)") else {
      throw Inconclusive("no URL with \(host)")
    }
    return url
  }

  /// Leads clients to somebody else, or back; connections that are open are cut.
  func lead(to port: UInt16? = nil) { wire.redirect(to: .loopback(port ?? server.port)) }

  /// What the server answers now.
  var body: String { shown.withLock { $0 } }

  /// Gives the server another key.
  ///
  /// - Parameter closingConnections: ends kept connections, as a restart does.
  func rotate(to identity: ServerIdentity, closingConnections: Bool = true) throws {
    try server.replaceIdentity(identity, closingConnections: closingConnections)
    let body = try Self.body(host, identity)
    shown.withLock { $0 = body }
  }

  private static func body(_ host: String, _ identity: ServerIdentity) throws -> String {
    "\(host) under \(try identity.pin.base64.prefix(8))"
  }
}
