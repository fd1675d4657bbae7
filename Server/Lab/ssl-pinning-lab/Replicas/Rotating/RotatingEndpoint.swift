import FaultLab
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A TLS server that shows another key whenever it is told to.
final class RotatingEndpoint: Sendable {
  let host: String
  /// The document that its keys are published in.
  let file: String
  let server: LocalTLSServer
  private let authority: CertificateAuthority
  private let keys: Locked<[ListedKey]>

  init(_ host: String, file: String, authority: CertificateAuthority) throws {
    (self.host, self.file, self.authority) = (host, file, authority)
    let identity = try authority.issue(names: [host])
    keys = Locked([ListedKey(host: host, pin: try identity.pin.base64)])
    server = try LocalTLSServer(identity: identity) { _ in .text("") }
  }

  /// Every key that it has shown, the present one last.
  var shown: [ListedKey] { keys.withLock { $0 } }

  /// Renews its certificate with a new key.
  func rotate() throws {
    let identity = try authority.issue(names: [host])
    let pin = try identity.pin.base64
    // Before anybody can see it.
    keys.withLock { $0.append(ListedKey(host: host, pin: pin)) }
    try server.replaceIdentity(identity, closingConnections: true)
  }
}
