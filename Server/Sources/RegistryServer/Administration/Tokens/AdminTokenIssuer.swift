import Foundation
import TLSTools

/// Issues tokens that the server with this configuration takes.
public struct AdminTokenIssuer: Sendable {
  private let key: AdminTokenKey

  /// Finds the key: `server.key` or, where it is not set, `prv.pem`.
  ///
  /// - Throws: ``DocumentSignerError/signingKey(path:_:)``.
  public init(_ configuration: ServerConfiguration) throws(DocumentSignerError) {
    if let secret = configuration.server.key {
      key = AdminTokenKey(secret: secret)
      return
    }
    let file = URL(filePath: configuration.tls.directory, directoryHint: .isDirectory)
      .appending(path: "prv.pem")
    do throws(SigningKeyError) {
      key = try AdminTokenKey(signingKey: try SigningKey(file: file))
    } catch { throw .signingKey(path: file.path(percentEncoded: false), error) }
  }

  /// A token.
  ///
  /// Hazard: it is all that its bearer needs. Print it for who asked, and write it to no log.
  ///
  /// - Parameters:
  ///   - name: who will have done what is done with it.
  ///   - now: Unix time in seconds.
  ///   - ttl: for how many seconds it is valid, from 1 second to 3660 days.
  /// - Throws: ``AdminTokenError``.
  public func token(
    for name: String, at now: Int64, ttl: Int64
  ) throws(AdminTokenError) -> String {
    guard (1...AdminToken.longest).contains(ttl) else { throw .times }
    return try key.text(of: AdminToken(name: name, issued: now, expires: now + ttl))
  }
}
