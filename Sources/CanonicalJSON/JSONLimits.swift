/// How large and how deeply nested a document may be before it is refused.
///
/// Both limits exist for documents that come from somebody else: the size bounds the work, the depth
/// bounds the stack that comparing, hashing, writing and freeing a ``JSONValue`` take.
///
/// Hazard: reading takes several times the document's size in memory, most for documents of nothing
/// but short elements. Who reads documents of strangers sets `maximumBytes` to what may be expected.
public struct JSONLimits: Sendable, Hashable {
  /// The most arrays and objects that may be open at once; a lone scalar has depth 0, `[]` depth 1.
  public let maximumDepth: Int

  /// The most bytes a document may have.
  public let maximumBytes: Int

  /// 128 levels and 64 MiB.
  ///
  /// RFC 8259 section 9 leaves both to the parser. Signed documents nest four levels deep and a
  /// registry of 100 000 keys has 22 MB, so both limits are far above use and far below harm.
  public static let standard = JSONLimits()

  /// The deepest nesting any limits allow: what comparing, hashing and freeing a value take of the
  /// 512 KiB stack that second threads have on Apple platforms, in an optimized build.
  public static let greatestDepth = 512

  /// The largest size any limits allow: positions in a document are kept in 32 bits.
  public static let greatestBytes = Int(Int32.max) - 1

  /// Sets limits of one's own; values outside `0...greatestDepth` and `0...greatestBytes` are
  /// brought to the nearest bound.
  public init(maximumDepth: Int = 128, maximumBytes: Int = 64 * 1024 * 1024) {
    self.maximumDepth = min(max(maximumDepth, 0), Self.greatestDepth)
    self.maximumBytes = min(max(maximumBytes, 0), Self.greatestBytes)
  }
}
