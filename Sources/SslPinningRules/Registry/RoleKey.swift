import CanonicalJSON

/// A key of a role: `{"alg": "ES256", "spki": "<base64 of the DER>"}`.
///
/// - The entry fixes the algorithm; the id is the SHA-256 of the SubjectPublicKeyInfo.
/// - An algorithm that is not known here verifies nothing, and is no fault of the key set: newer
///   clients may know it. A known one with a key of another type is.
public struct RoleKey: Sendable {
  /// The algorithm as written.
  public let algorithm: String
  /// SubjectPublicKeyInfo in DER.
  public let spki: [UInt8]
  /// SHA-256 of ``spki``.
  public let id: SPKIPin

  /// `nil` for an algorithm that is not known here.
  let verifier: (any SignatureVerifier)?

  /// A key.
  ///
  /// - Throws: ``DocumentFault/unusableKey(_:)``.
  public init(
    algorithm: String, spki: [UInt8], crypto: some RegistryCrypto
  ) throws(DocumentFault) {
    guard let id = SPKIPin(digest: crypto.sha256(spki)) else { throw .member("spki") }
    (self.algorithm, self.spki, self.id) = (algorithm, spki, id)
    guard let known = SignatureAlgorithm(rawValue: algorithm) else {
      verifier = nil
      return
    }
    guard let verifier = crypto.verifier(known, spki: spki) else { throw .unusableKey(id) }
    self.verifier = verifier
  }

  init(_ json: JSONValue, crypto: some RegistryCrypto) throws(DocumentFault) {
    guard let algorithm = json.objectValue?["alg"]?.stringValue else { throw .member("alg") }
    guard let text = json.objectValue?["spki"]?.stringValue,
      let spki = StrictBase64.decode(text), !spki.isEmpty
    else { throw .member("spki") }
    try self.init(algorithm: algorithm, spki: spki, crypto: crypto)
  }

  var json: JSONValue {
    .object(["alg": .string(algorithm), "spki": .string(StrictBase64.encode(spki))])
  }
}
