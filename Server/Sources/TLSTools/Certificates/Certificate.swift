import CSslPinningOpenSSL
import Foundation

/// One X.509 certificate, held as the bytes it came in.
///
/// The bytes are never re-encoded: two certificates are equal when their DER is.
public struct Certificate: Sendable, Hashable {
  /// The whole certificate in DER.
  public let der: [UInt8]

  /// Reads one certificate; bytes after its end are refused.
  public init(der: [UInt8]) throws(CertificateError) {
    _ = try Self.parse(der)
    self.der = der
  }

  /// Takes bytes that OpenSSL wrote.
  init(written der: [UInt8]) { self.der = der }

  /// Copies what OpenSSL already parsed or made.
  init(copying x509: OpaquePointer) throws(CertificateError) {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_X509(x509, &bytes)
    guard count > 0, let bytes else {
      throw .openSSL(operation: "writing a certificate", reason: OpenSSLErrors.drain())
    }
    defer { CRYPTO_free(bytes, #file, #line) }
    der = Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// Reads every certificate of a PEM text, in order; text between the blocks is skipped.
  ///
  /// - Throws: `noPEM` when there is none, `malformed` when any block is not a certificate.
  public static func certificates(inPEM text: String) throws(CertificateError) -> [Certificate] {
    OpenSSLErrors.clear()
    let bio = try MemoryBIO(Array(text.utf8))
    var found: [Certificate] = []
    while let x509 = PEM_read_bio_X509(bio.pointer, nil, nil, nil) {
      defer { X509_free(x509) }
      found.append(try Certificate(copying: x509))
    }
    let code = ERR_peek_last_error()
    let ended = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
    let reason = OpenSSLErrors.drain()
    guard ended else { throw .malformed(what: "certificate in PEM", reason: reason) }
    guard !found.isEmpty else { throw .noPEM(of: "CERTIFICATE") }
    return found
  }

  /// The certificate in PEM, lines of 64 characters (RFC 7468).
  public var pem: String {
    let base64 = Data(der).base64EncodedString(options: [
      .lineLength64Characters, .endLineWithLineFeed,
    ])
    return "-----BEGIN CERTIFICATE-----\n\(base64)\n-----END CERTIFICATE-----\n"
  }

  /// The subject as one line (RFC 2253), for people; never compare by it.
  public var subject: String { nameText(X509_get_subject_name) }

  /// The issuer as one line (RFC 2253), for people; never compare by it.
  public var issuer: String { nameText(X509_get_issuer_name) }

  /// The validity in Unix seconds; nil when the certificate holds a date nobody can read.
  public var validity: Validity? {
    guard let x509 = try? Self.parse(der),
      let from = Self.seconds(X509_get0_notBefore(x509.pointer)),
      let to = Self.seconds(X509_get0_notAfter(x509.pointer))
    else { return nil }
    return Validity(notBefore: from, notAfter: to)
  }

  /// The parsed form, for OpenSSL's own calls.
  func parsed() throws(CertificateError) -> OpenSSLObject { try Self.parse(der) }

  private static func parse(_ der: [UInt8]) throws(CertificateError) -> OpenSSLObject {
    OpenSSLErrors.clear()
    let (x509, rest) = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      let x509 = d2i_X509(nil, &cursor, buffer.count)
      return (x509, (buffer.baseAddress.map { $0 + buffer.count } ?? cursor) != cursor)
    }
    guard let x509 else {
      throw .malformed(what: "certificate", reason: OpenSSLErrors.drain())
    }
    let object = OpenSSLObject(x509) { X509_free($0) }
    guard !rest else { throw .malformed(what: "certificate", reason: "bytes after its end") }
    return object
  }

  private func nameText(_ part: (OpaquePointer) -> OpaquePointer?) -> String {
    guard let x509 = try? Self.parse(der), let name = part(x509.pointer),
      let bio = try? MemoryBIO(),
      X509_NAME_print_ex(bio.pointer, name, 0, nameFlags) >= 0
    else { return "" }
    return bio.text
  }

  private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var broken = tm()
    guard let time, ASN1_TIME_to_tm(time, &broken) == 1 else { return nil }
    return Int64(timegm(&broken))
  }
}

/// RFC 2253 order and escapes, but readable UTF-8 left as it is.
private let nameFlags =
  UInt(ASN1_STRFLGS_ESC_2253 | ASN1_STRFLGS_ESC_CTRL | ASN1_STRFLGS_UTF8_CONVERT)
  | UInt(XN_FLAG_SEP_COMMA_PLUS | XN_FLAG_DN_REV | XN_FLAG_FN_SN)
