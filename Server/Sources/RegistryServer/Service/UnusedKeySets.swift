import Foundation

/// Files with key sets that no document uses: what was rotated there is in force nowhere, and whoever did it to
/// be rid of a stolen key is not.
enum UnusedKeySets {
  /// Warns of each, with the document that may have been meant.
  static func warn(in directory: String, of documents: [DocumentConfiguration], _ log: ServerLog) {
    let files = documents.map(\.file)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for name in names.sorted() where !name.hasPrefix(".") && !files.contains(name) {
      let meant = files.first { $0.hasPrefix(name) } ?? Spelling.nearest(to: name, among: files)
      let hint =
        meant.map { "hint: was \($0) meant? keys rotate --registry-name \($0)" }
        ?? "hint: remove the file, or configure the document"
      log.event(
        .warn, "key_sets_unused",
        [
          "file": directory + "/" + name,
          "message": "no document is called \(name), so nothing is signed under its key sets; "
            + hint,
        ])
    }
  }
}
