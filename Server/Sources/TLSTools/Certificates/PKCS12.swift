import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules

/// Why a PKCS #12 file could not be read.
public enum PKCS12Error: Error, Hashable, Sendable {
  /// The password is not that of the file.
  case wrongPassword
  /// The bytes are no such file; the reason is OpenSSL's.
  case malformed(reason: String)
  /// It could be read, and has no certificate.
  case noCertificate
}

extension PKCS12Error: ExplainedError {
  public var description: String {
    switch self {
    case .wrongPassword: "the password is not that of the file"
    case .malformed(let reason): "not readable as PKCS #12: \(reason)"
    case .noCertificate: "no certificate in this PKCS #12 file"
    }
  }
}

/// The certificates of a PKCS #12 file (RFC 7292), as Keychain, Windows and `openssl pkcs12` write it.
///
/// - The private key that it is made for is dropped.
/// - Old files are under RC2 and 3DES. OpenSSL keeps those in a provider that the process does not load, so the file
///   is read in a library context of its own.
/// - A file without a MAC is refused, as by OpenSSL 3.0: nothing would tell a wrong password from a broken file.
/// - Hazard: the file says how often its password is hashed, and may say two thousand million times.
public enum PKCS12 {
  /// Whether bytes begin as such a file does: a sequence whose first member is the number 3. Keychain writes
  /// the sequence without its length, which DER forbids.
  public static func hasForm(of bytes: [UInt8]) -> Bool {
    guard bytes.first == 0x30, let length = bytes.dropFirst().first else { return false }
    let more = length > 0x80 ? Int(length & 0x7F) : 0
    return bytes.dropFirst(2 + more).starts(with: [0x02, 0x01, 0x03])
  }

  /// Reads the certificates: first the one that belongs to the private key, then the others in the order of the file.
  public static func certificates(
    in bytes: [UInt8], password: String
  ) throws(PKCS12Error) -> [Certificate] {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let library = OSSL_LIB_CTX_new(), OSSL_PROVIDER_load(library, "default") != nil else {
      throw .malformed(reason: OpenSSLErrors.drain())
    }
    defer { OSSL_LIB_CTX_free(library) }
    // Where it is not installed, files of today can be read all the same.
    _ = OSSL_PROVIDER_load(library, "legacy")
    var file = PKCS12_init_ex(NID_pkcs7_data, library, nil)
    defer { PKCS12_free(file) }
    OpenSSLErrors.clear()
    let isRead = bytes.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_PKCS12(&file, &cursor, buffer.count) != nil
    }
    guard isRead, let file else { throw .malformed(reason: OpenSSLErrors.drain()) }
    var (key, own, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
    let isOpen = PKCS12_parse(file, password, &key, &own, &others) == 1
    defer {
      EVP_PKEY_free(key)
      X509_free(own)
      while let one = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(one)) }
      OPENSSL_sk_free(others)
    }
    guard isOpen else {
      let isPassword =
        ERR_GET_REASON(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE
      throw isPassword ? .wrongPassword : .malformed(reason: OpenSSLErrors.drain())
    }
    var found: [Certificate] = []
    do throws(CertificateError) {
      if let own { found.append(try Certificate(copying: own)) }
      for index in 0..<max(0, OPENSSL_sk_num(others)) {
        guard let one = OPENSSL_sk_value(others, index) else { continue }
        found.append(try Certificate(copying: OpaquePointer(one)))
      }
    } catch { throw .malformed(reason: "\(error)") }
    guard !found.isEmpty else { throw .noCertificate }
    return found
  }
}
