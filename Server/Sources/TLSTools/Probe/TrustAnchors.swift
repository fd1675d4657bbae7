import CSslPinningOpenSSL
import SslPinningPlatform

/// The certificates a chain may end in.
///
/// - Empty means closed: without an anchor no chain is valid.
/// - An anchor given here counts whoever issued it (RFC 5280 section 6.1.1 d), so an intermediate
///   can be one. Where all are roots, a path has to end in a root.
public struct TrustAnchors: Sendable {
  package let store: OpenSSLObject
  /// How paths to these anchors are judged.
  let settings: VerifySettings
  /// Another number for each set that was ever made in this process: a verdict that is kept is told
  /// apart by it.
  let generation: UInt64
  private static let lastGeneration = Locked<UInt64>(0)

  /// The system's trust store as it is now, from where the pinned clients take it (``SystemAnchors``):
  /// a process that runs for months makes a new value now and then.
  public static func system() throws(CertificateError) -> TrustAnchors {
    try TrustAnchors([], includingSystem: true)
  }

  /// - Parameter includingSystem: adds the system's trust store.
  public init(
    _ certificates: [Certificate], includingSystem: Bool = false
  ) throws(CertificateError) {
    OpenSSLErrors.clear()
    guard let pointer = X509_STORE_new() else {
      throw .openSSL(operation: "making a trust store", reason: OpenSSLErrors.drain())
    }
    store = OpenSSLObject(pointer) { X509_STORE_free($0) }
    // A system without anchors trusts nothing, which the verdicts say.
    if includingSystem { _ = SystemAnchors().load(into: pointer) }
    // What a missing file of the system left behind is nobody's failure.
    OpenSSLErrors.clear()
    var areRoots = true
    for certificate in certificates {
      let x509 = try certificate.parsed()
      if X509_get_extension_flags(x509.pointer) & UInt32(EXFLAG_SI) == 0 { areRoots = false }
      guard X509_STORE_add_cert(pointer, x509.pointer) == 1 else {
        throw .openSSL(operation: "adding a trust anchor", reason: OpenSSLErrors.drain())
      }
    }
    settings = VerifySettings(endsAtAnyAnchor: !areRoots)
    generation = Self.lastGeneration.withLock { last in
      last += 1
      return last
    }
  }

  /// Every certificate of a PEM text, or one in DER.
  ///
  /// - Throws: `noPEM`, `malformed`.
  public init(reading bytes: [UInt8], includingSystem: Bool = false) throws(CertificateError) {
    // 0x30 begins every DER certificate and no PEM text.
    let certificates =
      bytes.first == 0x30
      ? [try Certificate(der: bytes)]
      : try Certificate.certificates(inPEM: String(decoding: bytes, as: UTF8.self))
    try self.init(certificates, includingSystem: includingSystem)
  }
}
