import SslPinningPlatform
import SslPinningRules

/// The server judges chains by the clients' own validator, so that what it publishes as trusted is trusted there.
extension ChainValidator {
  /// Trusts these certificates alone. Empty means closed: without an anchor no chain is valid.
  ///
  /// - Throws: `malformed` if the key of one cannot be read.
  public init(anchors certificates: [Certificate]) throws(CertificateError) {
    try self.init(certificates, includingSystem: false)
  }

  /// Trusts every certificate of a PEM text, or one in DER.
  ///
  /// - Throws: `noPEM`, `malformed`.
  public init(anchorsIn bytes: [UInt8]) throws(CertificateError) {
    // 0x30 begins every DER certificate and no PEM text.
    try self.init(
      anchors: bytes.first == 0x30
        ? [try Certificate(der: bytes)]
        : try Certificate.certificates(inPEM: String(decoding: bytes, as: UTF8.self)))
  }

  /// The system's trust store as it is now, from where the pinned clients take it: a process that runs for months
  /// makes a new value now and then. A system without anchors trusts nothing, which the verdicts say.
  public static func system() throws(CertificateError) -> ChainValidator {
    try ChainValidator([], includingSystem: true)
  }

  /// Whether a client without pins would believe these certificates for a host: a valid path leads from the
  /// first of them to an anchor, and it has the host's name.
  ///
  /// Hazard: it does not say that anybody holds the key. Whoever has seen a chain can show it about.
  ///
  /// - Parameters:
  ///   - certificates: in DER, the leaf first.
  ///   - time: Unix seconds.
  package func believes(_ certificates: [[UInt8]], for host: HostName, at time: Int64) -> Bool {
    switch evidence(presented: certificates, host: host, at: time).validation {
    case .success: true
    case .failure: false
    }
  }

  private init(_ certificates: [Certificate], includingSystem: Bool) throws(CertificateError) {
    do throws(TrustError) {
      try self.init(trust: .anchors(certificates.map(\.der), andSystem: includingSystem))
    } catch {
      if case .malformedAnchor(let index) = error {
        throw .malformed(what: "certificate", reason: "the key of anchor \(index) cannot be read")
      }
      throw .openSSL(operation: "making a trust store", reason: "\(error)")
    }
  }
}
