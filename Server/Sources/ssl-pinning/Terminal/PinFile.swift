import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Finds the pins in a file of certificates, certificate requests or public keys.
///
/// - DER, or PEM with any number of blocks: every certificate, request and public key counts, in order.
/// - A private key is passed over where certificates stand beside it, and refused where it is alone:
///   whoever asks for its pin has the public half as well.
/// - Nothing is re-encoded, so the pins of odd keys come out as the world sees them.
enum PinFile {
  /// More than any chain or bundle has.
  static let maximumBytes = 16 << 20

  /// - Throws: ``CommandFailure/couldNotFindOut(_:)`` where the file cannot be read, and
  ///   ``CommandFailure/no(_:)`` where it holds no pin or anything broken.
  static func pins(inFile path: String) throws(CommandFailure) -> [PinnedKey] {
    let bytes = try InputFile.read(path, limit: maximumBytes)
    guard !bytes.isEmpty else { throw .no("\(path) is empty") }
    let blocks: [PEMBlock]
    // Text of a certificate may look like PEM, and a comment above PEM may begin like DER.
    do throws(PEMError) { blocks = isDER(bytes) ? [] : try PEMBlock.blocks(in: bytes) } catch {
      throw .no("\(path): \(error)")
    }
    if blocks.isEmpty, bytes.first == DERReader.Tag.sequence.rawValue {
      do { return [try pin(inDER: bytes)] } catch { throw .no("\(path): \(error)") }
    }
    var pins: [PinnedKey] = []
    for (index, block) in blocks.enumerated() {
      do {
        if let pin = try pin(in: block) { pins.append(pin) }
      } catch { throw .no("\(path): block \(index + 1), \(block.label): \(error)") }
    }
    guard pins.isEmpty else { return pins }
    throw .no("\(path) holds \(contents(blocks)); hint: \(hint(blocks, path))")
  }

  private static func isDER(_ bytes: [UInt8]) -> Bool {
    var reader = DERReader(bytes[...])
    return (try? reader.element(tag: .sequence, what: "file")) != nil && reader.isAtEnd
  }

  private static func pin(inDER bytes: [UInt8]) throws -> PinnedKey {
    if CertificateRequest.hasForm(of: bytes) { return try PinnedKey(requestDER: bytes) }
    do throws(CertificateSyntaxError) { return try PinnedKey(certificateDER: bytes) } catch {
      if let key = try? PinnedKey(publicKeyDER: bytes) { return key }
      if let rsa = try? VerificationKey(bytes: bytes) {
        return try PinnedKey(publicKeyDER: rsa.spkiDER)
      }
      throw error
    }
  }

  /// - Returns: `nil` for what has no pin. What should have one and is broken is an error, also beside
  ///   good blocks: whoever pins what is shown would leave out a key without knowing.
  private static func pin(in block: PEMBlock) throws -> PinnedKey? {
    switch block.label {
    case "CERTIFICATE", "X509 CERTIFICATE":
      return try PinnedKey(certificateDER: block.bytes)
    case "TRUSTED CERTIFICATE":
      // OpenSSL's own: a certificate, and behind it what it is trusted for.
      var reader = DERReader(block.bytes[...])
      let certificate = try reader.element(tag: .sequence, what: "certificate")
      return try PinnedKey(certificateDER: [UInt8](certificate.whole))
    case "PUBLIC KEY":
      return try PinnedKey(publicKeyDER: block.bytes)
    case "RSA PUBLIC KEY":
      // Its own words speak of a registry's signing key.
      guard let key = try? VerificationKey(block.text) else {
        throw CertificateError.malformed(
          what: "RSA public key",
          reason: "not in the form of PKCS #1, or of a size that is not used")
      }
      return try PinnedKey(publicKeyDER: key.spkiDER)
    case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
      return try PinnedKey(requestDER: block.bytes)
    default:
      return nil
    }
  }

  private static func contents(_ blocks: [PEMBlock]) -> String {
    let labels = Set(blocks.map(\.label)).sorted()
    return labels.isEmpty
      ? "no certificate and no public key"
      : "nothing that a pin can be taken from: \(labels.joined(separator: ", "))"
  }

  private static func hint(_ blocks: [PEMBlock], _ path: String) -> String {
    blocks.contains { $0.label.hasSuffix("PRIVATE KEY") }
      ? "openssl pkey -in \(path) -pubout, and take the pin of that"
      : "it takes PEM or DER of certificates, certificate requests or public keys"
  }
}
