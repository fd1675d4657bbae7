import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules

extension Certificate {
  /// Whether the certificate may sign others, as OpenSSL reads basicConstraints and, where there is
  /// none, the older signs of an authority. For showing; a validator judges for itself.
  public var isAuthority: Bool {
    guard let x509 = try? parsed() else { return false }
    let answer = X509_check_ca(x509.pointer)
    OpenSSLErrors.clear()
    return answer > 0
  }

  /// Whether it is for a host, by its subjectAltName alone.
  package func isFor(_ host: HostName) -> Bool {
    guard let x509 = try? parsed() else { return false }
    defer { OpenSSLErrors.clear() }
    return HostCheck.matches(x509.pointer, host)
  }
}
