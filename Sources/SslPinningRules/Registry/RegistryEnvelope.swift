import CanonicalJSON

/// A registry document as it came: parsed strictly, nothing believed yet.
///
///     { "payload": { "keys": [ … ] }, "signature": "<base64>", … }
///
/// - The signature is checked over the canonical form (RFC 8785) of the payload *as received*,
///   members that nobody here knows included; nothing is decoded from the payload before that.
/// - Members beside the payload are kept: format 2 puts its statement, the statement's signatures
///   and the key sets there, and format-1 clients never look at them.
public struct RegistryEnvelope: Sendable {
  /// The whole document, unknown members included.
  public let document: JSONObject
  /// The canonical form of the payload: the bytes that are signed.
  public let canonicalPayload: [UInt8]
  /// The signature over ``canonicalPayload``; empty where a document with a statement has none.
  public let signature: [UInt8]

  /// Not to be believed before a signature was found good over it.
  let payload: JSONObject

  /// Parses a document.
  ///
  /// - Throws: ``RegistryError``, never ``RegistryError/badSignature``.
  public init(
    parsing bytes: [UInt8], limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    guard bytes.count <= limits.maximumBytes else { throw .tooLarge(limit: limits.maximumBytes) }
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch { throw .malformed(error) }
    guard let document = value.objectValue else { throw .missingMember("payload") }
    guard let payloadValue = document["payload"], let payload = payloadValue.objectValue else {
      throw .missingMember("payload")
    }
    // Beside a statement the format-1 signature may be anything: it is not what is believed.
    let isFormat2 = document["statement"] != nil
    guard let signatureText = document["signature"]?.stringValue ?? (isFormat2 ? "" : nil) else {
      throw .missingMember("signature")
    }
    let signature = StrictBase64.decode(signatureText) ?? []
    if signature.isEmpty, !isFormat2 { throw .unreadableSignature }
    self.document = document
    self.payload = payload
    self.signature = signature
    canonicalPayload = payloadValue.canonicalBytes
  }

  /// The payload, once its signature was found good.
  ///
  /// - Throws: ``RegistryError/badSignature``.
  public func verifiedPayload(
    by verifier: some SignatureVerifier
  ) throws(RegistryError) -> JSONObject {
    guard verifier.isValid(signature: signature, over: canonicalPayload) else {
      throw .badSignature
    }
    return payload
  }
}
