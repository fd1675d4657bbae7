import CSslPinningOpenSSL
import Foundation

/// The contents of a new certificate; signing them makes a `Certificate`.
///
/// - Serial numbers are 127 random bits, positive and never zero (RFC 5280 section 4.1.2.2).
/// - Every certificate carries subjectKeyIdentifier and authorityKeyIdentifier, so that path
///   building never has to guess between keys of the same name.
/// - basicConstraints and keyUsage are critical (RFC 5280 sections 4.2.1.9 and 4.2.1.3).
struct CertificateTemplate {
  enum Role {
    case authority(pathLength: Int?)
    case server(names: [SubjectName])
  }

  var commonName: String?
  var role: Role
  var validity: Validity

  /// Signs the certificate for `subject`'s public half.
  ///
  /// - Parameter issuer: the certificate of the signing key; nil makes a self-signed one.
  func sign(
    subject: PrivateKey, issuer: Certificate?, by signer: PrivateKey
  ) throws(CertificateError) -> Certificate {
    OpenSSLErrors.clear()
    guard validity.notBefore <= validity.notAfter else { throw unusableValidity }
    guard let x509 = X509_new() else { throw failure("allocating a certificate") }
    defer { X509_free(x509) }
    guard X509_set_version(x509, 2) == 1, X509_set_pubkey(x509, subject.handle.pointer) == 1
    else { throw failure("preparing a certificate") }
    try setSerial(x509)
    try setValidity(x509)
    try setSubject(x509)
    let parent = try issuer?.parsed()
    guard
      X509_set_issuer_name(x509, X509_get_subject_name(parent?.pointer ?? x509)) == 1
    else { throw failure("naming the issuer") }
    for (nid, value) in extensions {
      try add(nid, value, to: x509, issuedBy: parent?.pointer ?? x509)
    }
    guard X509_sign(x509, signer.handle.pointer, EVP_sha256()) > 0 else {
      throw failure("signing a certificate")
    }
    return try Certificate(copying: x509)
  }

  private var extensions: [(Int32, String)] {
    switch role {
    case .authority(let pathLength):
      let limit = pathLength.map { ",pathlen:\($0)" } ?? ""
      return [
        (NID_basic_constraints, "critical,CA:TRUE\(limit)"),
        (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
        (NID_authority_key_identifier, "keyid:always"),
      ]
    case .server(let names):
      // RFC 5280 section 4.2.1.6: critical when the subject is empty.
      let critical = commonName == nil ? "critical," : ""
      return [
        (NID_basic_constraints, "critical,CA:FALSE"),
        (NID_key_usage, "critical,digitalSignature"),
        (NID_ext_key_usage, "serverAuth"),
        (NID_subject_key_identifier, "hash"),
        (NID_authority_key_identifier, "keyid:always"),
        (NID_subject_alt_name, critical + names.map(\.extensionValue).joined(separator: ",")),
      ]
    }
  }

  private func add(
    _ nid: Int32, _ value: String, to x509: OpaquePointer, issuedBy issuer: OpaquePointer
  ) throws(CertificateError) {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer, x509, nil, nil, 0)
    guard let made = X509V3_EXT_conf_nid(nil, &context, nid, value) else {
      throw failure("adding an extension")
    }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(x509, made, -1) == 1 else { throw failure("adding an extension") }
  }

  private func setSerial(_ x509: OpaquePointer) throws(CertificateError) {
    guard let number = BN_new() else { throw failure("making a serial number") }
    defer { BN_free(number) }
    guard BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != nil
    else { throw failure("making a serial number") }
  }

  private func setValidity(_ x509: OpaquePointer) throws(CertificateError) {
    guard ASN1_TIME_set(X509_getm_notBefore(x509), Int(validity.notBefore)) != nil,
      ASN1_TIME_set(X509_getm_notAfter(x509), Int(validity.notAfter)) != nil
    else {
      OpenSSLErrors.clear()
      throw unusableValidity
    }
  }

  private func setSubject(_ x509: OpaquePointer) throws(CertificateError) {
    guard let commonName else { return }
    let text = Array(commonName.utf8)
    let added = X509_NAME_add_entry_by_txt(
      X509_get_subject_name(x509), "CN", MBSTRING_UTF8, text, Int32(text.count), -1, 0)
    guard added == 1 else { throw failure("naming the subject") }
  }

  private var unusableValidity: CertificateError {
    .validity(notBefore: validity.notBefore, notAfter: validity.notAfter)
  }

  private func failure(_ operation: String) -> CertificateError {
    .openSSL(operation: operation, reason: OpenSSLErrors.drain())
  }
}

/// One name that a server certificate covers: an entry of subjectAltName (RFC 5280 section 4.2.1.6).
///
/// - A DNS name is ASCII letters, digits, `-` and `_` in labels of 1…63 bytes, at most 253 bytes,
///   with `*` only as the whole first label. Nothing else reaches OpenSSL's extension syntax, in
///   which a comma would begin another name.
/// - What reads as an IP address is one: a DNS entry `127.0.0.1` would match nothing.
public enum SubjectName: Sendable, Hashable {
  case dns(String)
  /// In its canonical text form.
  case ipv4(String)
  /// In its canonical text form (RFC 5952).
  case ipv6(String)

  /// Reads `www.example.com`, `*.example.com`, `127.0.0.1`, `::1` or `[::1]`.
  public init(_ text: String) throws(CertificateError) {
    let bare =
      text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
    if let canonical = NumericAddress.canonicalIPv4(text) {
      self = .ipv4(canonical)
    } else if let canonical = NumericAddress.canonicalIPv6(bare) {
      self = .ipv6(canonical)
    } else if Self.isDNSName(text) {
      self = .dns(text.lowercased())
    } else {
      throw .invalidName(text)
    }
  }

  /// The name as text, the way a user writes it.
  public var text: String {
    switch self {
    case .dns(let name), .ipv4(let name), .ipv6(let name): name
    }
  }

  /// The entry in OpenSSL's extension syntax.
  var extensionValue: String {
    switch self {
    case .dns(let name): "DNS:\(name)"
    case .ipv4(let address), .ipv6(let address): "IP:\(address)"
    }
  }

  private static func isDNSName(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard (1...253).contains(bytes.count) else { return false }
    let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for (index, label) in labels.enumerated() {
      if index == 0, labels.count > 1, label.elementsEqual([UInt8(ascii: "*")]) { continue }
      guard (1...63).contains(label.count), label.allSatisfy(isNameByte) else { return false }
    }
    // A last label of digits only is a mistyped address, never a name (RFC 3696).
    return labels.last?.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } == false
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

/// The time a certificate is valid, in Unix seconds (UTC), both ends included
/// (RFC 5280 section 4.1.2.5). Any past or future span can be made, for tests of expiry.
public struct Validity: Sendable, Hashable {
  public var notBefore: Int64
  public var notAfter: Int64

  public init(notBefore: Int64, notAfter: Int64) {
    self.notBefore = notBefore
    self.notAfter = notAfter
  }

  /// From one hour before `now` (clocks differ) to `days` after it.
  public static func days(_ days: Int, from now: Int64) -> Validity {
    Validity(notBefore: now - 3600, notAfter: now + Int64(days) * 86_400)
  }

  /// `days(_:from:)` by this machine's clock.
  public static func daysFromNow(_ days: Int) -> Validity {
    .days(days, from: Int64(Date().timeIntervalSince1970))
  }
}

/// IP addresses as text.
///
/// Strict forms only (`inet_pton`): `127.1`, `0x7f000001` and zone suffixes are never addresses.
package enum NumericAddress {
  /// The canonical dotted form, or nil when the text is no IPv4 address.
  package static func canonicalIPv4(_ text: String) -> String? { canonical(text, AF_INET) }

  /// The canonical form (RFC 5952), or nil when the text is no IPv6 address.
  static func canonicalIPv6(_ text: String) -> String? { canonical(text, AF_INET6) }

  /// The canonical form of either family, or nil for a name.
  static func canonical(_ text: String) -> String? { canonicalIPv4(text) ?? canonicalIPv6(text) }

  private static func canonical(_ text: String, _ family: Int32) -> String? {
    // inet_pton stops at the first NUL and would ignore what follows.
    guard !text.utf8.contains(0) else { return nil }
    var address = [UInt8](repeating: 0, count: 16)
    guard inet_pton(family, text, &address) == 1 else { return nil }
    var buffer = [CChar](repeating: 0, count: 64)
    guard inet_ntop(family, &address, &buffer, socklen_t(buffer.count)) != nil else { return nil }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
