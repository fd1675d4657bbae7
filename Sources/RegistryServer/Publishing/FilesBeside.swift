import CanonicalJSON

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
}
