import Foundation

/// Keeps state out of backups, so that it does not come back years later or on another device.
enum BackupExclusion {
  /// Marks a file; where the system has no such mark, nothing happens. A file that cannot be marked
  /// is still good, so that is no error.
  static func apply(to path: String) {
    #if canImport(Security)
      var url = URL(fileURLWithPath: path)
      var values = URLResourceValues()
      values.isExcludedFromBackup = true
      try? url.setResourceValues(values)
    #endif
  }
}
