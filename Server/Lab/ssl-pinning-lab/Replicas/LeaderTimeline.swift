import RegistryCore
import RegistryServer

/// Which replica led when, according to the replicas' logs.
///
/// Pure: times are passed in.
struct LeaderTimeline {
  typealias Time = ContinuousClock.Instant

  /// What a replica's log said, or what happened to it.
  enum Event {
    case began
    case ended
  }

  private var since: [Int: Time] = [:]
  /// How long two replicas led at once, each time.
  private(set) var overlaps: [Duration] = []
  /// When replicas began to lead, newest last.
  private(set) var beginnings: [(replica: Int, time: Time)] = []
  /// When replicas ceased to lead, newest last.
  private(set) var ends: [(replica: Int, time: Time)] = []

  /// The replicas that lead now.
  var leaders: [Int] { since.keys.sorted() }

  /// The replica that leads alone, if one does.
  var leader: Int? { since.count == 1 ? since.keys.first : nil }

  mutating func enter(_ event: Event, of replica: Int, at time: Time) {
    switch event {
    case .began:
      since[replica] = time
      beginnings.append((replica, time))
    case .ended:
      guard let own = since.removeValue(forKey: replica) else { return }
      ends.append((replica, time))
      for other in since.values { overlaps.append(time - max(own, other)) }
    }
  }

  /// The replicas that led at any moment since this one.
  func led(since time: Time) -> Set<Int> {
    Set(since.keys).union(ends.filter { $0.time > time }.map(\.replica))
  }

  /// The first replica that began to lead after this moment, and when.
  func beginning(after time: Time) -> (replica: Int, time: Time)? {
    beginnings.first { $0.time > time }
  }
}

/// Compares the database's history with the keys that endpoints showed.
///
/// Pure: values in, values out.
struct HistoryAudit {
  /// Keys that were published more than once.
  private(set) var twice: [ListedKey] = []
  /// Identical entries: written again, because the writer did not know of its first success.
  private(set) var repeated: [HistoryEntry] = []
  /// Keys that were shown and never published.
  private(set) var lost: [ListedKey] = []
  /// Keys that were published and never shown.
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
