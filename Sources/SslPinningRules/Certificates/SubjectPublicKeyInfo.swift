/// Finds the bytes of the SubjectPublicKeyInfo in a certificate's DER.
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
/// - Only the framing up to the key is read, so an unknown key type has a pin, too.
///
/// The same walk finds `validity`, which comes before the key.
public enum SubjectPublicKeyInfo {
  /// The DER of the SubjectPublicKeyInfo, tag and length included.
  ///
  /// - Parameter certificate: one certificate in DER, without trailing bytes.
  /// - Throws: ``CertificateSyntaxError``.
  public static func bytes(
    inCertificate certificate: [UInt8]
  ) throws(CertificateSyntaxError) -> ArraySlice<UInt8> {
    try fields(ofCertificate: certificate).key
  }

  /// A certificate's validity in Unix seconds, both ends included (RFC 5280 §4.1.2.5); `nil` if it cannot be
  /// read.
  package static func validity(
    inCertificate certificate: [UInt8]
  ) -> (notBefore: Int64, notAfter: Int64)? {
    guard let validity = try? fields(ofCertificate: certificate).validity else { return nil }
    var times = DERReader(validity)
    guard let notBefore = nextTime(in: &times), let notAfter = nextTime(in: &times) else {
      return nil
    }
    return (notBefore, notAfter)
  }

  private static func nextTime(in times: inout DERReader) -> Int64? {
    let text: Substring
    if times.nextTag == .utcTime, let time = try? times.element(tag: .utcTime, what: "time") {
      let short = String(decoding: time.contents, as: UTF8.self)
      // A year of two digits: 50 to 99 mean 1950 to 1999.
      text = Substring((short >= "50" ? "19" : "20") + short)
    } else if let time = try? times.element(tag: .generalizedTime, what: "time") {
      text = Substring(String(decoding: time.contents, as: UTF8.self))
    } else {
      return nil
    }
    // The RFC requires seconds and the zone Z.
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

/// The SHA-256 of a whole certificate in DER: it matches this certificate and no other, not even a renewal
/// with the same key.
///
/// Certificates expire within months, and unlike a pin on the key this one does not survive a renewal. It
/// exists for apps that bundle their server's or CA's certificate.
public struct CertificateFingerprint: Hashable, Sendable {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// A fingerprint from its 32 bytes.
  ///
  /// - Returns: `nil` unless there are exactly 32 bytes.
  public init?(digest: some Collection<UInt8>) {
    guard digest.count == 32 else { return nil }
    self.init(computed: [UInt8](digest))
  }

  /// A fingerprint from 32 bytes that a hash function just computed.
  package init(computed digest: [UInt8]) {
    precondition(digest.count == 32, "a SHA-256 has 32 bytes")
    bytes = digest
  }
}

extension CertificateFingerprint: Comparable {
  public static func < (left: CertificateFingerprint, right: CertificateFingerprint) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}

extension CertificateFingerprint: CustomStringConvertible {
  /// Lower-case hex, like the output of `openssl x509 -fingerprint -sha256` without colons.
  public var description: String {
    hex(bytes)
  }
}

/// Walks the elements of one DER value (X.690 §8.1, §10.1): low tag numbers and definite,
/// minimal lengths only. Enough to find a field; it decodes nothing.
package struct DERReader {
  package enum Tag: UInt8, Sendable {
    case integer = 0x02
    case bitString = 0x03
    case octetString = 0x04
    case null = 0x05
    case objectIdentifier = 0x06
    case utcTime = 0x17
    case generalizedTime = 0x18
    case sequence = 0x30
    case explicit0 = 0xa0
  }

  package struct Element {
    /// Tag, length and contents.
    package let whole: ArraySlice<UInt8>
    package let contents: ArraySlice<UInt8>
  }

  private var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  package var isAtEnd: Bool { rest.isEmpty }
  package var offset: Int { rest.startIndex }
  package var nextTag: Tag? { rest.first.flatMap(Tag.init(rawValue:)) }

  /// Takes the next element, which must have this tag.
  package mutating func element(tag: Tag, what: String) throws(CertificateSyntaxError) -> Element {
    guard let first = rest.first else { throw .truncated(what, offset: offset) }
    guard first == tag.rawValue else { throw .unexpectedTag(first, what, offset: offset) }
    let lengthStart = rest.startIndex + 1
    guard lengthStart < rest.endIndex else { throw .truncated(what, offset: offset) }
    var length = Int(rest[lengthStart])
    var contentsStart = lengthStart + 1
    if length >= 0x80 {
      // Four length bytes allow 4 GB; zero of them would be BER's indefinite form.
      let count = length & 0x7f
      guard (1...4).contains(count) else { throw .badLength(what, offset: lengthStart) }
      guard contentsStart + count <= rest.endIndex else { throw .truncated(what, offset: offset) }
      length = rest[contentsStart..<(contentsStart + count)].reduce(0) { $0 << 8 | Int($1) }
      let minimal = length >= 0x80 && (count == 1 || length >> (8 * (count - 1)) != 0)
      guard minimal else { throw .badLength(what, offset: lengthStart) }
      contentsStart += count
    }
    guard rest.endIndex - contentsStart >= length else { throw .truncated(what, offset: offset) }
    let end = contentsStart + length
    let element = Element(
      whole: rest[rest.startIndex..<end], contents: rest[contentsStart..<end])
    rest = rest[end...]
    return element
  }
}

/// Why no pin can be taken from these bytes. Offsets are in bytes from the start of the DER.
public enum CertificateSyntaxError: Error, Equatable, Sendable {
  /// The bytes end inside this field.
  case truncated(String, offset: Int)
  /// Another element is in the place of this field.
  case unexpectedTag(UInt8, String, offset: Int)
  /// A length that DER does not allow: indefinite, not minimal, or beyond 4 GB.
  case badLength(String, offset: Int)
  /// Bytes after the certificate.
  case trailingData(offset: Int)
}

extension CertificateSyntaxError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .truncated(let field, let offset):
      "not a certificate: it ends inside \(field) at byte \(offset)"
    case .unexpectedTag(let tag, let field, let offset):
      "not a certificate: tag 0x\(String(tag, radix: 16)) where \(field) belongs, at byte \(offset)"
    case .badLength(let field, let offset):
      "not a certificate: a length that DER does not allow in \(field), at byte \(offset)"
    case .trailingData(let offset):
      "data behind the certificate, at byte \(offset)"
    }
  }
}
