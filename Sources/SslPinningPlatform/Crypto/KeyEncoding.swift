import SslPinningRules

/// Finds the DER of a key in any of the spellings that people pass keys in.
///
/// - DER begins with 0x30 and is taken as it stands, never trimmed.
/// - PEM may stand among white space and text, and holds exactly one block.
/// - Everything else is base64, of DER or of PEM, with line breaks or without. One layer only.
enum KeyEncoding {
  /// The DER inside `bytes`.
  static func der(in bytes: [UInt8]) throws(VerificationKeyError) -> [UInt8] {
    if isDER(bytes) { return bytes }
    if isPEM(bytes) { return try contents(ofPEM: bytes) }
    let characters = bytes.filter { !isWhiteSpace($0) }
    guard !characters.isEmpty else { throw .empty }
    guard let inner = StrictBase64.decode(characters) else { throw .unknownEncoding }
    if isDER(inner) { return inner }
    guard isPEM(inner) else { throw .unknownEncoding }
    return try contents(ofPEM: inner)
  }

  private static func contents(ofPEM text: [UInt8]) throws(VerificationKeyError) -> [UInt8] {
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: text) } catch {
      // Only private keys are ever encrypted.
      throw error == .encrypted ? .privateKey : .pem(error)
    }
    // Refused before anything else is said: a private key has no business here at all.
    guard !blocks.contains(where: { $0.label.hasSuffix("PRIVATE KEY") }) else { throw .privateKey }
    guard let block = blocks.first else { throw .unknownEncoding }
    guard blocks.count == 1 else { throw .severalBlocks(blocks.count) }
    if block.label.hasSuffix("CERTIFICATE") { throw .certificate }
    guard block.label == "PUBLIC KEY" || block.label == "RSA PUBLIC KEY" else {
      throw .unexpectedBlock(label: block.label)
    }
    return block.bytes
  }

  private static func isDER(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  private static func isPEM(_ bytes: [UInt8]) -> Bool {
    let marker = [UInt8]("-----BEGIN ".utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: marker) }
  }

  private static func isWhiteSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }
}
