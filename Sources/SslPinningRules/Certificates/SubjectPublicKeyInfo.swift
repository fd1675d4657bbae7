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
///
/// The field before the key that is of use, `validity`, is found on the same walk.
public enum SubjectPublicKeyInfo {
  /// The DER of the SubjectPublicKeyInfo, tag and length included.
  ///
  /// - Parameter certificate: one certificate in DER, without anything behind it.
  /// - Throws: ``CertificateSyntaxError``.
  public static func bytes(
    inCertificate certificate: [UInt8]
  ) throws(CertificateSyntaxError) -> ArraySlice<UInt8> {
    try fields(ofCertificate: certificate).key
  }

  /// The beginning of a certificate's validity in Unix seconds (RFC 5280 §4.1.2.5); `nil` where it
  /// cannot be read.
  package static func notBefore(inCertificate certificate: [UInt8]) -> Int64? {
    guard let validity = try? fields(ofCertificate: certificate).validity else { return nil }
    var times = DERReader(validity)
    let text: Substring
    if times.nextTag == .utcTime, let time = try? times.element(tag: .utcTime, what: "notBefore") {
      let short = String(decoding: time.contents, as: UTF8.self)
      // Two digits of a year: 50 to 99 are of the last century.
      text = Substring((short >= "50" ? "19" : "20") + short)
    } else if let time = try? times.element(tag: .generalizedTime, what: "notBefore") {
      text = Substring(String(decoding: time.contents, as: UTF8.self))
    } else {
      return nil
    }
    // Seconds are there and the zone is Z in every certificate that follows the RFC.
    guard text.utf8.count == 15, text.hasSuffix("Z") else { return nil }
    var rest = text
    func take(_ count: Int) -> Substring {
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    return RFC3339.unixSeconds(
      "\(take(4))-\(take(2))-\(take(2))T\(take(2)):\(take(2)):\(take(2))Z")
  }

  private static func fields(
    ofCertificate certificate: [UInt8]
  ) throws(CertificateSyntaxError) -> (validity: ArraySlice<UInt8>, key: ArraySlice<UInt8>) {
    var outer = DERReader(certificate[...])
    let sequence = try outer.element(tag: .sequence, what: "certificate")
    guard outer.isAtEnd else { throw .trailingData(offset: outer.offset) }
    var fields = DERReader(sequence.contents)
    let tbs = try fields.element(tag: .sequence, what: "tbsCertificate")
    var body = DERReader(tbs.contents)
    if body.nextTag == .explicit0 { _ = try body.element(tag: .explicit0, what: "version") }
    _ = try body.element(tag: .integer, what: "serialNumber")
    for what in ["signature", "issuer"] { _ = try body.element(tag: .sequence, what: what) }
    let validity = try body.element(tag: .sequence, what: "validity").contents
    _ = try body.element(tag: .sequence, what: "subject")
    return (validity, try body.element(tag: .sequence, what: "subjectPublicKeyInfo").whole)
  }
}
