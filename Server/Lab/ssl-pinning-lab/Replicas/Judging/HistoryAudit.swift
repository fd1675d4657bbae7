import RegistryCore
import RegistryServer

/// What the database's history says of the keys that endpoints showed.
///
/// Pure: values in, values out.
struct HistoryAudit {
  /// Keys that the history publishes more than once.
  private(set) var twice: [ListedKey] = []
  /// Entries that stand there more than once, to the letter: written, and not known to be written.
  private(set) var repeated: [HistoryEntry] = []
  /// Keys that were shown, and that the history does not publish.
  private(set) var lost: [ListedKey] = []
  /// Keys that nobody showed.
  private(set) var invented: [ListedKey] = []

  /// - Parameters:
  ///   - entries: a document's whole history.
  ///   - shown: every key that an endpoint of the document ever showed.
  init(_ entries: [HistoryEntry], shown: Set<ListedKey>) {
    var counts: [ListedKey: Int] = [:]
    for entry in entries where entry.event == "key_published" {
      let host = entry.endpoint.prefix { $0 != ":" }
      counts[ListedKey(host: String(host), pin: entry.pin?.base64 ?? ""), default: 0] += 1
    }
    repeated = Dictionary(grouping: entries) { $0 }.filter { $0.value.count > 1 }.map(\.key)
    twice = counts.filter { $0.value > 1 }.map(\.key)
    lost = shown.filter { counts[$0] == nil }
    invented = counts.keys.filter { !shown.contains($0) }
  }
}
