/// Why a text is not PEM.
public enum PEMError: Error, Equatable, Sendable {
  /// A block begins and does not end: a truncated file.
  case unterminated(label: String)
  /// A block ends that never began.
  case endWithoutBegin(label: String)
  /// The body is not base64, or empty.
  case notBase64(label: String)
  /// The block is encrypted under a passphrase.
  case encrypted
}

extension PEMError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unterminated(let label):
      "the \(label) block has no end; hint: the file looks truncated"
    case .endWithoutBegin(let label): "an end of \(label) without its beginning"
    case .notBase64(let label): "the \(label) block is not base64"
    case .encrypted: "the key is encrypted; hint: decrypt it with openssl pkey -in … -out …"
    }
  }
}
