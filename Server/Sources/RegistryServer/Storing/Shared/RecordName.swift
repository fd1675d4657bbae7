/// Which names records may have.
enum RecordName {
  /// Refuses what is neither a document's file name nor such a name behind one dot: nothing else may
  /// become part of a path or a key.
  static func check(_ name: String) throws(StoreError) {
    let file = name.hasPrefix(".") ? String(name.dropFirst()) : name
    guard DocumentConfiguration.isSafe(file: file) else { throw .invalidName(name) }
  }
}
