import SslPinningPlatform
import TLSTools

/// Makes server certificates for whatever name is asked for, each once, all with one key.
final class CertificateForger: Sendable {
  private let authority: CertificateAuthority
  private let key: PrivateKey
  private let made = Locked<[String: ServerIdentity]>([:])
  let upstream: UnverifiedTLSClient

  init(authority: CertificateAuthority) throws(CertificateError) {
    self.authority = authority
    key = try .generate(.p256)
    upstream = try UnverifiedTLSClient()
  }

  func identity(for name: String) throws(CertificateError) -> ServerIdentity {
    let name = name.lowercased()
    if let known = made.withLock({ $0[name] }) { return known }
    let identity = try authority.issue(names: [name], key: key)
    return made.withLock { made in
      // Two threads may have made one each; both then show the first.
      let kept = made[name] ?? identity
      made[name] = kept
      return kept
    }
  }

  /// The server side of TLS towards a client that may ask for a name itself.
  func context(fallbackName: String) throws(CertificateError) -> TLSServerContext {
    try TLSServerContext(options: TLSServerOptions(sessionTickets: false)) { [self] serverName in
      try? identity(for: serverName ?? fallbackName)
    }
  }
}
