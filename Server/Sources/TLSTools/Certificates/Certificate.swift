import CSslPinningOpenSSL
import CSslPinningShims
import Foundation
import SslPinningPlatform
import SslPinningRules

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

  /// The validity in Unix seconds; nil if a date cannot be read.
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
    guard !pp_brings_own_curve(der, der.count) else {
      throw .malformed(what: "certificate", reason: "its key is on no curve that has a name")
    }
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

extension Certificate {
  /// Whether the certificate may sign others, as OpenSSL reads basicConstraints or, without that extension,
  /// the older marks of an authority. For display only: validators decide for themselves.
  public var isAuthority: Bool {
    guard let x509 = try? parsed() else { return false }
    let answer = X509_check_ca(x509.pointer)
    OpenSSLErrors.clear()
    return answer > 0
  }

  /// Whether this authority's key signed it. Says nothing of dates, names and constraints.
  public func isSigned(by authority: Certificate) -> Bool {
    guard let own = try? parsed(), let other = try? authority.parsed(),
      let key = X509_get0_pubkey(other.pointer)
    else { return false }
    defer { OpenSSLErrors.clear() }
    return X509_verify(own.pointer, key) == 1
  }

  /// The DNS names and addresses of its subjectAltName (RFC 5280 section 4.2.1.6), in their order; other kinds of
  /// names, and those that this library would not issue, are left out.
  public var names: [SubjectName] { alternativeNames.compactMap(\.self) }

  /// Whether it has no other names than those.
  public var hasOnlyNames: Bool { !alternativeNames.contains(nil) }

  private var alternativeNames: [SubjectName?] {
    guard let x509 = try? parsed(),
      let list = X509_get_ext_d2i(x509.pointer, NID_subject_alt_name, nil, nil)
    else { return [] }
    let names = OpaquePointer(list)
    defer { GENERAL_NAMES_free(names) }
    return (0..<OPENSSL_sk_num(names)).map { index in
      // Only these two kinds are strings of bytes in the union.
      guard let name = OPENSSL_sk_value(names, index)?.assumingMemoryBound(to: GENERAL_NAME.self),
        [GEN_DNS, GEN_IPADD].contains(name.pointee.type),
        let value = name.pointee.d.ia5, let start = ASN1_STRING_get0_data(value)
      else { return nil }
      let bytes = Array(
        UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(value))))
      switch (name.pointee.type, bytes.count) {
      case (GEN_DNS, _): return try? SubjectName(String(decoding: bytes, as: UTF8.self))
      case (GEN_IPADD, 4): return try? SubjectName(bytes.map(String.init).joined(separator: "."))
      case (GEN_IPADD, 16):
        let groups = stride(from: 0, to: 16, by: 2).map {
          String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16)
        }
        return try? SubjectName(groups.joined(separator: ":"))
      default: return nil
      }
    }
  }

  /// Whether its subjectAltName covers a host; the common name does not count.
  package func isFor(_ host: HostName) -> Bool {
    guard let x509 = try? parsed() else { return false }
    defer { OpenSSLErrors.clear() }
    return HostCheck.matches(x509.pointer, host)
  }
}

/// Why a key, a certificate or a file of either could not be made or read.
public enum CertificateError: Error, Equatable, Sendable {
  /// The text holds no PEM block of the wanted kind (`CERTIFICATE`, `PRIVATE KEY`).
  case noPEM(of: String)
  /// The bytes are not what was expected; `what` names that, `reason` is OpenSSL's.
  case malformed(what: String, reason: String)
  /// A subjectAltName that is neither a DNS name in ASCII nor an IP address.
  case invalidName(String)
  /// No names: a server certificate needs at least one.
  case noNames
  /// An RSA size outside 1024…8192 bits.
  case keySize(Int)
  /// A validity that ends before it begins, or that X.509 cannot write down (years 0–9999).
  case validity(notBefore: Int64, notAfter: Int64)
  /// An OpenSSL call failed that never fails on good input (out of memory, no entropy).
  case openSSL(operation: String, reason: String)
  /// The file could not be written or read; `reason` is the system's.
  case file(path: String, reason: String)
}

extension CertificateError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noPEM(let kind):
      "no PEM block '\(kind)' in the text; hint: it begins with -----BEGIN \(kind)-----"
    case .malformed(let what, let reason): "malformed \(what): \(reason)"
    case .invalidName(let name):
      "'\(name)' is no DNS name in ASCII and no IP address; hint: write international names as xn--…"
    case .noNames: "a server certificate needs at least one name"
    case .keySize(let bits): "\(bits) bits is no RSA key size; hint: 2048, 3072 or 4096"
    case .validity(let from, let to): "no certificate can be valid from \(from) to \(to)"
    case .openSSL(let operation, let reason): "\(operation) failed: \(reason)"
    case .file(let path, let reason): "\(path): \(reason)"
    }
  }
}

extension CertificateError: ExplainedError {}

/// A memory buffer for OpenSSL's PEM readers and writers.
final class MemoryBIO {
  let pointer: OpaquePointer

  /// An empty buffer to write into.
  init() throws(CertificateError) {
    guard let bio = BIO_new(BIO_s_mem()) else {
      throw .openSSL(operation: "allocating a buffer", reason: OpenSSLErrors.drain())
    }
    pointer = bio
  }

  /// A buffer that holds a copy of `bytes`.
  convenience init(_ bytes: [UInt8]) throws(CertificateError) {
    try self.init()
    guard let count = Int32(exactly: bytes.count) else {
      throw .malformed(what: "PEM text", reason: "longer than 2 GiB")
    }
    if count > 0, BIO_write(pointer, bytes, count) != count {
      throw .openSSL(operation: "filling a buffer", reason: OpenSSLErrors.drain())
    }
  }

  deinit { BIO_free(pointer) }

  /// What was written so far.
  var bytes: [UInt8] {
    var start: UnsafeMutablePointer<CChar>?
    let count = BIO_ctrl(pointer, BIO_CTRL_INFO, 0, &start)
    guard count > 0, let start else { return [] }
    return UnsafeRawBufferPointer(start: start, count: count).map { $0 }
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }
}
