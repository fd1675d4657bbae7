import CanonicalJSON
import Foundation
import SslPinningRules

/// The bytes of a sealed record: one line of text, then the content as it is.
///
///     ssl-pinning sealed 1 <store id> <key id> <tag> [<key id> <tag>]
///
/// - A tag is HMAC-SHA-256 over the domain, the store's id, the id of the key in force, the record's name, the
///   version under which it is stored, and the content, each behind its length in 8 bytes. So a record that was
///   edited, moved to another name or store, or stored again under another version does not verify.
/// - The first key is the one in force when the record was written; a second one is there while one key takes
///   the place of another.
/// - Ids and tags are base64, and in no other spelling.
package struct SealedRecord: Sendable, Equatable {
  /// What a tag covers.
  package struct Fields: Sendable, Equatable {
    /// The id of the store, as text.
    var store: String
    /// The key in force.
    var key: SPKIPin
    /// The record's name.
    var name: String
    /// The version under which it is stored, counted from 1.
    var version: Int64
    /// What was written.
    var content: [UInt8]

    package init(
      store: String, key: SPKIPin, name: String, version: Int64, content: [UInt8]
    ) {
      (self.store, self.key, self.name) = (store, key, name)
      (self.version, self.content) = (version, content)
    }

    /// What is hashed.
    var message: [UInt8] {
      var message: [UInt8] = []
      message.reserveCapacity(content.count + 256)
      let number = (0..<8).reversed().map { UInt8(truncatingIfNeeded: version >> ($0 * 8)) }
      for field in [
        [UInt8](SealedRecord.domain.utf8), [UInt8](store.utf8), key.bytes, [UInt8](name.utf8),
        number, content,
      ] {
        let count = UInt64(field.count)
        message += (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        message += field
      }
      return message
    }
  }

  /// A tag, and the key that it was made with.
  package struct Tag: Sendable, Equatable {
    package var key: SPKIPin
    var bytes: [UInt8]
  }

  /// The id of the store.
  package let store: String
  /// The tags, that of the key in force first; never empty.
  package let tags: [Tag]
  /// What was written.
  package let content: [UInt8]

  static let domain = "ssl-pinning store record v1"
  private static let mark = "ssl-pinning sealed "
  private static let format = "1"
  /// No line is longer.
  private static let longestLine = 1024

  /// Seals a record under the first of the keys, with a tag of each.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  package init(_ fields: Fields, keys: [SealKey]) throws(StoreError) {
    var tags: [Tag] = []
    for key in keys { tags.append(Tag(key: key.id, bytes: try key.tag(of: fields))) }
    (store, self.tags, content) = (fields.store, tags, fields.content)
  }

  /// Takes a stored record apart; nothing of it is verified. `nil` if it has no seal that can be read.
  package init?(parsing bytes: [UInt8]) {
    let head = bytes.prefix(Self.longestLine)
    guard let end = head.firstIndex(of: UInt8(ascii: "\n")), Self.isMarked(bytes) else {
      return nil
    }
    let words = String(decoding: head[..<end], as: UTF8.self).dropFirst(Self.mark.count)
      .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 4 || words.count == 6, words[0] == Self.format,
      StoreIdentity.isID(words[1])
    else { return nil }
    var tags: [Tag] = []
    for index in stride(from: 2, to: words.count, by: 2) {
      guard let key = try? SPKIPin(base64: words[index]),
        let tag = StrictBase64.decode(words[index + 1])
      else { return nil }
      tags.append(Tag(key: key, bytes: tag))
    }
    (store, self.tags, content) = (words[1], tags, Array(bytes[(end + 1)...]))
  }

  /// Whether bytes begin as those of a sealed record do.
  static func isMarked(_ bytes: [UInt8]) -> Bool { bytes.starts(with: mark.utf8) }

  /// The key that was in force when it was written.
  var keyInForce: SPKIPin? { tags.first?.key }

  /// The key that finds its tag right; `nil` if none of these does.
  ///
  /// - Throws: ``StoreError/failed(operation:reason:)``.
  package func verified(
    by keys: [SealKey], name: String, version: Int64
  ) throws(StoreError) -> SealKey? {
    guard let keyInForce else { return nil }
    let fields = Fields(
      store: store, key: keyInForce, name: name, version: version, content: content)
    for tag in tags {
      guard let key = keys.first(where: { $0.id == tag.key }) else { continue }
      if try key.isTag(tag.bytes, of: fields) { return key }
    }
    return nil
  }

  /// As it is stored.
  package var encoded: [UInt8] {
    let words = tags.flatMap { [$0.key.base64, StrictBase64.encode($0.bytes)] }
    let line = Self.mark + ([Self.format, store] + words).joined(separator: " ") + "\n"
    return [UInt8](line.utf8) + content
  }
}
