/// What a client does that knows format 1 only: it looks neither at statements nor at key sets.
extension TrustedRegistry {
  /// Believes a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - verifier: the signing key that the app ships with.
  ///   - digest: SHA-256.
  ///   - now: Unix time in seconds.
  ///   - limits: sizes in bytes and times in days.
  /// - Throws: ``RegistryError``.
  public init(
    accepting bytes: [UInt8], verifiedBy verifier: some SignatureVerifier,
    digest: ([UInt8]) -> [UInt8], at now: Int64, limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    let envelope = try RegistryEnvelope(parsing: bytes, limits: limits)
    let payload = try envelope.verifiedPayload(by: verifier)
    let document = AcceptedDocument(
      bytes: bytes, payloadDigest: hex(digest(envelope.canonicalPayload)),
      registry: try Registry(format1: payload), statement: nil,
      newestDate: AcceptedDocument.newestDate(of: payload))
    self.init(
      document: document, standing: Standing(), vanished: VanishedHosts(), confirmed: now,
      limits: limits)
  }

  /// What is believed after a newer document came in.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - verifier: the signing key that the app ships with.
  ///   - digest: SHA-256.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``; then `self` stays in force. ``RegistryError/statementStripped``
  ///   for a registry that was believed for its statement: use ``update(with:under:at:by:)``.
  public func accepting(
    _ bytes: [UInt8], verifiedBy verifier: some SignatureVerifier,
    digest: ([UInt8]) -> [UInt8], at clock: Int64
  ) throws(RegistryError) -> TrustedRegistry {
    guard standing.statement == nil else { throw .statementStripped }
    let next = try TrustedRegistry(
      accepting: bytes, verifiedBy: verifier, digest: digest, at: clock, limits: limits)
    var vanished = self.vanished
    vanished.replace(document, by: next.document, at: clock, limits: limits)
    return TrustedRegistry(
      document: next.document, standing: standing, vanished: vanished, confirmed: clock,
      limits: limits)
  }
}

/// Bytes as lower-case hexadecimal digits.
package func hex(_ bytes: [UInt8]) -> String {
  let digits: [Character] = Array("0123456789abcdef")
  return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
}
