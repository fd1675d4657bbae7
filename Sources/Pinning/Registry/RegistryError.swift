import CanonicalJSON

/// Why a document is not accepted as a registry. Nothing of a refused document is ever used.
public enum RegistryError: Error, Equatable, Sendable {
  /// More bytes than the limit.
  case tooLarge(limit: Int)
  /// Not strict I-JSON.
  case malformed(JSONError)
  /// JSON of another shape: this member is missing or of another type.
  case missingMember(String)
  /// The signature is not base64.
  case unreadableSignature
  /// The signature does not belong to the payload under the given key.
  case badSignature
  /// Signed and well-formed, and not one entry has both a readable host and a readable pin. An
  /// empty list is no list: it would refuse every host.
  case noUsableKey
}

extension RegistryError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLarge(let limit): "the registry is larger than \(limit) bytes"
    case .malformed(let error): "the registry is not strict JSON: \(error)"
    case .missingMember(let name): "the document has no \(name); hint: is this a registry?"
    case .unreadableSignature: "the signature is not base64"
    case .badSignature:
      "the signature does not match the payload; hint: is this the registry's signing key?"
    case .noUsableKey: "the registry holds no usable key"
    }
  }
}
