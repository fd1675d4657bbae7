import CanonicalJSON
import SslPinningPlatform
import SslPinningRules

/// A client that knows format 1 only: it looks neither at statements nor at key sets.
extension TrustedRegistry {
  /// Believes a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - verifier: the signing key that the app ships with.
  ///   - now: Unix time in seconds.
  ///   - limits: sizes in bytes and times in days.
  public init(
    accepting bytes: [UInt8], verifiedBy verifier: some SignatureVerifier, at now: Int64,
    limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    try self.init(
      accepting: try format1Members(of: bytes, verifiedBy: verifier, limits),
      under: try trust(verifier, limits), at: now)
  }

  /// What is believed after a newer document came in.
  public func accepting(
    _ bytes: [UInt8], verifiedBy verifier: some SignatureVerifier, at clock: Int64
  ) throws(RegistryError) -> TrustedRegistry {
    let update = self.update(
      with: try format1Members(of: bytes, verifiedBy: verifier, .standard),
      under: try trust(verifier, .standard), at: clock)
    if let refusal = update.refusal { throw refusal }
    return update.registry
  }
}

/// What such a client reads of a document, after the signature was found good.
private func format1Members(
  of bytes: [UInt8], verifiedBy verifier: some SignatureVerifier, _ limits: RegistryLimits
) throws(RegistryError) -> [UInt8] {
  let envelope = try RegistryEnvelope(parsing: bytes, limits: limits)
  _ = try envelope.verifiedPayload(by: verifier)
  var known = JSONObject()
  for name in ["payload", "signature"] { known[name] = envelope.document[name] }
  return JSONValue.object(known).canonicalBytes
}

/// Trust in one RSA key, and in no statement: the key that would sign one verifies nothing.
private func trust(
  _ verifier: some SignatureVerifier, _ limits: RegistryLimits
) throws(RegistryError) -> RegistryTrust {
  do throws(DocumentFault) {
    let crypto = PlatformRegistryCrypto()
    let nobody = try RoleKey(algorithm: "none", spki: [0], crypto: crypto)
    return RegistryTrust(
      registry: "", shipped: try KeyRole(keys: [nobody], threshold: 1), format1Key: verifier,
      requiresStatement: false, limits: limits, crypto: crypto)
  } catch { throw .invalidKeySet(epoch: 0, error) }
}
