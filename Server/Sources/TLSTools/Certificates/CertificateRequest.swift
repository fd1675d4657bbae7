import CSslPinningOpenSSL
import SslPinningRules

/// A certificate request (PKCS #10, RFC 2986) whose own signature is good: whoever made it has the
/// private key.
///
///     CertificationRequest ::= SEQUENCE { certificationRequestInfo, signatureAlgorithm, signature }
///     CertificationRequestInfo ::= SEQUENCE { version INTEGER, subject Name,
///       subjectPKInfo SEQUENCE   <- sliced, header included
///       … }                                                                   (RFC 2986 §4)
public struct CertificateRequest: Sendable, Hashable {
  /// The SubjectPublicKeyInfo as the bytes stand: it will stand so in the certificate.
  public let publicKeyDER: [UInt8]

  /// Reads a request; bytes after its end are refused.
  ///
  /// - Throws: ``CertificateError/malformed(what:reason:)``, a signature that is not good included.
  public init(der: [UInt8]) throws(CertificateError) {
    OpenSSLErrors.clear()
    let (request, rest) = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      let request = d2i_X509_REQ(nil, &cursor, buffer.count)
      return (request, (buffer.baseAddress.map { $0 + buffer.count } ?? cursor) != cursor)
    }
    guard let request else {
      throw Self.malformed("not in the form of PKCS #10 (\(OpenSSLErrors.drain()))")
    }
    defer { X509_REQ_free(request) }
    guard !rest else { throw Self.malformed("bytes after its end") }
    guard let key = X509_REQ_get0_pubkey(request) else {
      throw Self.malformed("its key is of no known kind")
    }
    guard X509_REQ_verify(request, key) == 1 else {
      OpenSSLErrors.clear()
      throw Self.malformed("its signature is not by its own key")
    }
    do throws(CertificateSyntaxError) { publicKeyDER = try Self.publicKey(in: der) } catch {
      throw Self.malformed("\(error)")
    }
  }

  /// Whether bytes have the fields of a request and of nothing else, its signature good or not: whatever
  /// is wrong with them is wrong with a request. A certificate has another SEQUENCE where the
  /// attributes stand, `[0]`.
  public static func hasForm(of der: [UInt8]) -> Bool {
    (try? fields(of: der).next) == .explicit0
  }

  private static func publicKey(in der: [UInt8]) throws(CertificateSyntaxError) -> [UInt8] {
    [UInt8](try fields(of: der).key.whole)
  }

  /// The key, and what stands behind it.
  private static func fields(
    of der: [UInt8]
  ) throws(CertificateSyntaxError) -> (key: DERReader.Element, next: DERReader.Tag?) {
    var outer = DERReader(der[...])
    var fields = DERReader(try outer.element(tag: .sequence, what: "request").contents)
    let info = try fields.element(tag: .sequence, what: "certificationRequestInfo")
    var body = DERReader(info.contents)
    _ = try body.element(tag: .integer, what: "version")
    _ = try body.element(tag: .sequence, what: "subject")
    let key = try body.element(tag: .sequence, what: "subjectPKInfo")
    return (key, body.nextTag)
  }

  private static func malformed(_ reason: String) -> CertificateError {
    .malformed(what: "certificate request", reason: reason)
  }
}
