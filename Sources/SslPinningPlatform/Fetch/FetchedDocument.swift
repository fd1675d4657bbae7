/// What a conditional request for a document brought.
public enum FetchedDocument: Hashable, Sendable {
  /// A document, and the entity tag to ask with next time (RFC 9110 §8.8.3).
  case fresh([UInt8], etag: String?)
  /// The document is the one that the entity tag names (status 304).
  case unchanged
}
