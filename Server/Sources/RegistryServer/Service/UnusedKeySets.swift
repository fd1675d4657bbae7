import Foundation

/// Files with key sets that no document uses: what was rotated there is in force nowhere, and whoever did it to
/// be rid of a stolen key is not.
enum UnusedKeySets {
  /// Warns of each, with the document that may have been meant, and if the configured directory is none.
  static func warn(of configuration: ServerConfiguration, _ log: ServerLog) {
    let directory = configuration.keySetsDirectory
    var isDirectory: ObjCBool = false
    if configuration.publishing.keySets != nil,
      !FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory)
        || !isDirectory.boolValue
    {
      log.event(
        .warn, "key_sets_missing",
        [
          "directory": directory,
          "message": "publish.key_sets is no directory (\(directory)), so no key sets are read; "
            + "hint: name the directory that keys rotate and keys sign-set write to",
        ])
    }
    let files = configuration.documents.map(\.file)
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
