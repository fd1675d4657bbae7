import Pinning
import PinningPlatform

/// A signed document, finished: the bytes that every client gets until the next one.
public struct PublishedDocument: Sendable {
  /// Its name below `/api/v1/`.
  public let file: String
  /// The whole document.
  public let bytes: [UInt8]
  /// A strong entity tag with its quotes (RFC 9110 §8.8.3): equal tags mean equal bytes.
  public let entityTag: String
  /// When it was signed, in Unix seconds.
  public let signed: Int64
  /// What it says.
  let entries: [DocumentEntry]

  init(file: String, bytes: [UInt8], entries: [DocumentEntry], signed: Int64) {
    self.file = file
    self.bytes = bytes
    self.entries = entries
    self.signed = signed
    entityTag = "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
  }
}
