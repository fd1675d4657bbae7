import TLSTools

/// The certificate that a server shows, and its key.
///
/// Hazard: it holds the private key in clear text; nothing prints it.
package struct ListenerIdentity: Sendable, Equatable {
  /// The certificate and its chain, leaf first.
  package let certificatePEM: String
  package let keyPEM: String

  /// No file of either kind comes near.
  private static let limit = 1 << 20

  /// Takes PEM texts that belong together.
  ///
  /// - Throws: ``HTTPServerError/certificate(reason:)`` where they do not, or are unreadable.
  init(certificatePEM: String, keyPEM: String) throws(HTTPServerError) {
    do throws(CertificateError) {
      _ = try ServerIdentity(
        certificates: Certificate.certificates(inPEM: certificatePEM), key: PrivateKey(pem: keyPEM))
    } catch { throw .certificate(reason: "\(error)") }
    self.certificatePEM = certificatePEM
    self.keyPEM = keyPEM
  }

  /// Reads PEM files that belong together.
  package init(certificateFile: String, keyFile: String) throws(HTTPServerError) {
    try self.init(certificatePEM: Self.text(certificateFile), keyPEM: Self.text(keyFile))
  }

  private static func text(_ path: String) throws(HTTPServerError) -> String {
    do throws(SmallFile.Failure) {
      return String(decoding: try SmallFile.read(path, limit: limit), as: UTF8.self)
    } catch { throw .certificate(reason: "\(path): \(error)") }
  }
}
