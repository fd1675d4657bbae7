import CanonicalJSON
import Foundation

/// What ``StaticFiles`` writes beside a document, for whoever puts another one in its place by hand.
package struct FilesBeside: Sendable {
  /// The payload, and its name below `payload/`.
  package let payload: [UInt8]
  package let digest: String
  /// `nil` where clients need the whole document, and no statement may stand alone.
  package let statement: [UInt8]?

  package init(_ document: JSONObject) {
    let parts = DocumentParts(document)
    (payload, digest, statement) = (parts.payload, parts.digest, parts.statement())
  }

  /// The document for `.gz`; `nil` where zlib has no memory.
  package static func compressed(_ bytes: [UInt8]) -> [UInt8]? { Gzip.compressed(bytes) }

  /// Removes payloads that two newer ones stand beside.
  package func removeOld(in directory: String) { StaticFiles.removeOld(in: directory, but: digest) }

  /// Gives a file that is about to replace another a later second. Web servers tell two versions of a file by
  /// size and second, and one statement is as long as the next: whoever asked between two of the same second would
  /// be told that nothing changed.
  package static func outdate(_ old: stat, by descriptor: Int32) -> Bool {
    var new = stat()
    guard fstat(descriptor, &new) == 0 else { return false }
    guard new.st_mtim.tv_sec <= old.st_mtim.tv_sec else { return true }
    var times = [old.st_mtim, old.st_mtim]
    times[1].tv_sec += 1
    return futimens(descriptor, times) == 0
  }
}
