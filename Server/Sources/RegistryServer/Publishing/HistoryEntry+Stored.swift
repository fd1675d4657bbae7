import CanonicalJSON
import RegistryCore
import RegistryStores

extension HistoryEntry {
  /// The entries of a page from a store, those that cannot be read left out.
  static func read(_ page: [StoredEntry]) -> [HistoryEntry] {
    page.compactMap { entry in
      (try? JSONValue(parsing: entry.bytes)).flatMap { HistoryEntry($0) }
    }
  }
}
