import CSslPinningOpenSSL

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1): whoever made a tag had the key.
public enum MessageAuthentication {
  /// How many bytes a tag has.
  public static let tagBytes = 32

  /// The tag of a message.
  ///
  /// - Throws: ``CertificateError/openSSL(operation:reason:)``, which good input never earns.
  public static func tag(
    over message: [UInt8], key: [UInt8]
  ) throws(CertificateError) -> [UInt8] {
    OpenSSLErrors.clear()
    var tag = [UInt8](repeating: 0, count: tagBytes)
    var length = 0
    guard
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &tag, tag.count,
        &length) != nil, length == tagBytes
    else { throw .openSSL(operation: "HMAC", reason: OpenSSLErrors.drain()) }
    return tag
  }

  /// Whether a tag is that of the message. Takes as long whatever the tag is, so that nobody can find
  /// the right one byte by byte; only its length shows.
  ///
  /// - Throws: ``CertificateError/openSSL(operation:reason:)``.
  public static func isTag(
    _ tag: [UInt8], over message: [UInt8], key: [UInt8]
  ) throws(CertificateError) -> Bool {
    let right = try self.tag(over: message, key: key)
    return tag.count == right.count && CRYPTO_memcmp(tag, right, right.count) == 0
  }
}
