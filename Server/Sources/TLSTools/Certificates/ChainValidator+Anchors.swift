import SslPinningPlatform
import SslPinningRules

/// The server validates chains with the clients' own validator, so that clients trust what it publishes.
extension ChainValidator {
  /// Trusts these certificates alone. Without any, no chain is valid.
  ///
  /// - Throws: `malformed` if a certificate's key cannot be read.
  public init(anchors certificates: [Certificate]) throws(CertificateError) {
    try self.init(certificates, includingSystem: false)
  }

  /// Trusts every certificate in a PEM text, or a single one in DER.
  ///
  /// - Throws: `noPEM`, `malformed`.
  public init(anchorsIn bytes: [UInt8]) throws(CertificateError) {
    // 0x30 begins every DER certificate and no PEM text.
    try self.init(
      anchors: bytes.first == 0x30
        ? [try Certificate(der: bytes)]
        : try Certificate.certificates(inPEM: String(decoding: bytes, as: UTF8.self)))
  }

  /// The system's trust store as it is now, read from where pinned clients read it. A process that runs for months
  /// should make a new value now and then. Without system anchors no chain is valid, and the verdicts say so.
  public static func system() throws(CertificateError) -> ChainValidator {
    try ChainValidator([], includingSystem: true)
  }

  /// The chain by which a client without pins would accept these certificates for a host: a valid path leads from
  /// the first of them to an anchor, and the first covers the host's name. `nil` if there is none.
  ///
  /// Hazard: this does not prove that anybody holds the key. Anyone who has seen a chain can replay it.
  ///
  /// - Parameters:
  ///   - certificates: in DER, the leaf first.
  ///   - time: Unix seconds.
  package func validated(
    _ certificates: [[UInt8]], for host: HostName, at time: Int64
  ) -> ValidatedChain? {
    switch evidence(presented: certificates, host: host, at: time).validation {
    case .success(let chain): chain
    case .failure: nil
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
