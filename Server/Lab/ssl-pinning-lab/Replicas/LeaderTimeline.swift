import RegistryCore
import RegistryServer

/// Who led when, as the replicas themselves said it.
///
/// Pure: times are passed in.
struct LeaderTimeline {
  typealias Time = ContinuousClock.Instant

  /// What a replica said, or what became of it.
  enum Event {
    case began
    case ended
  }

  private var since: [Int: Time] = [:]
  /// How long two led at once, each time.
  private(set) var overlaps: [Duration] = []
  /// When each began to lead, newest last.
  private(set) var beginnings: [(replica: Int, time: Time)] = []
  /// When each led no more, newest last.
  private(set) var ends: [(replica: Int, time: Time)] = []

  /// Who leads now.
  var leaders: [Int] { since.keys.sorted() }

  /// The one that leads alone.
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

  /// When somebody began to lead after this moment.
  func beginning(after time: Time) -> (replica: Int, time: Time)? {
    beginnings.first { $0.time > time }
  }
}

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
