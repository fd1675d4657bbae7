import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Where a server keeps the key that seals its store, if a command holds the signing key: a line of text,
///
///     ssl-pinning seal key 1 <public key, base64> <seal key, base64>
///
/// - It comes from the signing key all the same (``SealKey``), so a file that is lost is made again by the command, and
///   servers with one signing key agree without copying it. With the file a server starts, and serves what it
///   published, while the command fails.
/// - For its owner alone. Whoever reads it can seal records, and sign none.
/// - `seal.old.key` is the same of a key that another one takes the place of, as `prv.old.pem` is beside `prv.pem`.
///
/// Hazard: it outlives the right to use the signing key. Whoever had that once can make it.
package enum SealKeyFile {
  /// Its name in `tls.dir`.
  package static let name = "seal.key"
  /// Its name for the key before.
  package static let formerName = "seal.old.key"
  private static let mark = "ssl-pinning seal key 1"

  /// The kept key, or the one that the command makes.
  static func own(
    _ signingKey: SigningKey, in directory: String
  ) throws(SigningKeyError) -> SealKey {
    let path = directory + "/" + name
    guard let kept = try read(path) else { return try SealKey(signingKey) }
    guard kept.publicKeyDER == signingKey.publicKeyDER else {
      throw .unreadable(
        path: path,
        reason:
          "it is that of the signing key \(kept.id.base64), and \(signingKey.id.base64) is configured"
          + "; hint: if the new key is meant, rename the file to \(formerName), then ssl-pinning keys adopt"
          + " \(signingKey.id.base64)")
    }
    return kept
  }

  /// The kept key of the signing key before; `nil` if there is none.
  static func former(in directory: String) throws(SigningKeyError) -> SealKey? {
    try read(directory + "/" + formerName)
  }

  /// Keeps a key, unless it is kept already.
  ///
  /// - Throws: `FileError`; then the command is needed at each start.
  package static func keep(_ key: SealKey, in directory: String) throws(FileError) {
    let path = directory + "/" + name
    guard access(path, F_OK) != 0 else { return }
    let words = [mark, StrictBase64.encode(key.publicKeyDER), StrictBase64.encode(key.bytes)]
    try AtomicFile(path: path).write([UInt8]((words.joined(separator: " ") + "\n").utf8))
  }

  private static func read(_ path: String) throws(SigningKeyError) -> SealKey? {
    guard access(path, F_OK) == 0 || errno != ENOENT else { return nil }
    let bytes: [UInt8]
    do throws(SmallFile.Failure) { bytes = try SmallFile.read(path, limit: 1 << 16) } catch {
      throw .unreadable(path: path, reason: "\(error)")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    guard text.hasPrefix(mark + " "), words.count == 6,
      let publicKey = StrictBase64.decode(words[4]),
      let key = StrictBase64.decode(words[5]), key.count == 32
    else {
      throw .unreadable(
        path: path,
        reason: "it is no seal key; hint: remove it, and the signing command makes it again")
    }
    return SealKey(publicKeyDER: publicKey, bytes: key)
  }
}

extension SigningKey {
  fileprivate var id: SPKIPin { trustKey.roleKey.id }
}
