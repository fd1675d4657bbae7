/// Finds the SubjectPublicKeyInfo in a certificate's DER, as the bytes stand.
///
///     Certificate  ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signature }
///     tbsCertificate ::= SEQUENCE {
///       version      [0] OPTIONAL   -- absent in version-1 certificates
///       serialNumber INTEGER        -- any length, any sign: serials in the field are odd
///       signature    SEQUENCE
///       issuer       SEQUENCE
///       validity     SEQUENCE
///       subject      SEQUENCE
///       subjectPublicKeyInfo SEQUENCE   <- sliced, header included
///       … }                                                              (RFC 5280 §4.1)
///
/// - The key is sliced, never decoded and encoded again: re-encoding changes the pin of RSA-PSS
///   keys, explicit EC parameters and negative moduli.
/// - Nothing but the framing on the way is read, so an unknown key type has a pin too.
public enum SubjectPublicKeyInfo {
  /// The DER of the SubjectPublicKeyInfo, tag and length included.
  ///
  /// - Parameter certificate: one certificate in DER, without anything behind it.
  /// - Throws: ``CertificateSyntaxError``.
  public static func bytes(
    inCertificate certificate: [UInt8]
  ) throws(CertificateSyntaxError) -> ArraySlice<UInt8> {
    var outer = DERReader(certificate[...])
    let sequence = try outer.element(tag: .sequence, what: "certificate")
    guard outer.isAtEnd else { throw .trailingData(offset: outer.offset) }
    var fields = DERReader(sequence.contents)
    let tbs = try fields.element(tag: .sequence, what: "tbsCertificate")
    var body = DERReader(tbs.contents)
    if body.nextTag == .explicit0 { _ = try body.element(tag: .explicit0, what: "version") }
    _ = try body.element(tag: .integer, what: "serialNumber")
    for what in ["signature", "issuer", "validity", "subject"] {
      _ = try body.element(tag: .sequence, what: what)
    }
    return try body.element(tag: .sequence, what: "subjectPublicKeyInfo").whole
  }
}
