import Foundation
import TLSTools

/// A file in `tls.dir` that says which store this server sealed, or saw sealed: `sealed-store`, the store's id.
///
/// Somebody who can write to the store, and to nothing else, cannot remove it. So he cannot pass an edited store
/// off as one that never had a seal.
struct SealMark: Sendable {
  private let path: String

  /// The mark in this directory.
  init(directory: String) { path = directory + "/sealed-store" }

  /// Whether a store was seen sealed before.
  var isThere: Bool { access(path, F_OK) == 0 }

  /// The id of that store.
  var id: String? {
    (try? SmallFile.read(path, limit: 4096)).map {
      String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }

  /// Notes a store.
  ///
  /// - Returns: why that cannot be done, in the system's words; `nil` if it was.
  func write(_ id: String) -> String? {
    guard self.id != id else { return nil }
    do {
      try Data((id + "\n").utf8).write(to: URL(filePath: path), options: .atomic)
      return nil
    } catch { return String(cString: strerror(errno)).lowercased() }
  }
}
