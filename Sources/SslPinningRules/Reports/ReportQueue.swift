import CanonicalJSON

/// Reports on their way to collectors: a pure value, which a shell keeps on the disk.
///
/// - The first failure of a kind goes out at once. Its repeats within the window go out as one report
///   with a count, however many they are; while a collector is away, so does everything since.
/// - Each URL is served by itself: what one has received or refused, another is still owed.
/// - At least once: a report leaves the queue when a collector has answered, and not before. One whose
///   answer was lost goes out again under the same `report-id`, with the same count or a larger one.
/// - Repeats are always taken in. Of new failures that find the queue full, the newest are refused and
///   counted (`dropped-reports`): what is known already says more than what came after it. Kinds that
///   no configured URL is owed any more give way first, the oldest first.
/// - One process at a time sends to a URL; if it dies, the next may after the lease.
/// - A time in the future beyond what any rule allows was written under a wrong clock and counts as
///   past: a clock that was set back silences nothing.
package struct ReportQueue: Hashable, Sendable {
  /// One kind of failure.
  struct Entry: Hashable, Sendable {
    var key: String
    var host: String
    /// Random, for collectors to tell a report that came twice.
    var id: String
    /// What no repeat changes.
    var body: JSONObject
    /// What each URL has yet to be told.
    var pending: [String: ReportTally]
    /// What each URL was told.
    var sent: [String: Sent] = [:]
    /// How many bytes the body has.
    var bytes: Int

    init(
      key: String, host: String, id: String, body: JSONObject, pending: [String: ReportTally],
      sent: [String: Sent] = [:]
    ) {
      self.key = key
      self.host = host
      self.id = id
      self.body = body
      self.pending = pending
      self.sent = sent
      bytes = JSONValue.object(body).canonicalBytes.count
    }
  }

  struct Sent: Hashable, Sendable {
    /// How many reports of this entry the URL has answered.
    var serial: Int64
    /// When it answered the last.
    var at: Int64
  }

  struct Endpoint: Hashable, Sendable {
    var notBefore: Int64 = 0
    var failures = 0
    var leaseOwner: String?
    var leaseUntil: Int64 = 0
  }

  package var rules: ReportRules
  var entries: [Entry] = []
  var endpoints: [String: Endpoint] = [:]
  /// How many failures found no room, since the queue was begun.
  package internal(set) var dropped: Int64 = 0

  /// An empty queue.
  package init(rules: ReportRules = ReportRules()) { self.rules = rules }

  /// Whether there is nothing to send, now or later.
  package var isIdle: Bool { entries.allSatisfy { $0.pending.isEmpty } }

  /// How many kinds of failures are held.
  package var count: Int { entries.count }

  /// Takes in what was seen.
  ///
  /// - Parameters:
  ///   - urls: who is to be told.
  ///   - makeID: a random text for a kind that is new.
  package mutating func add(
    _ inbox: ReportInbox, app: ReportedApp, urls: [String], at now: Int64,
    makeID: () -> String
  ) {
    dropped += inbox.dropped
    for item in inbox.items {
      let key = item.report.key
      let pending = Dictionary(urls.map { ($0, item.tally) }) { first, _ in first }
      if merge(pending, into: key.text) { continue }
      insert(
        Entry(
          key: key.text, host: key.host, id: makeID(), body: item.report.body(app),
          pending: pending), urls: urls)
    }
  }

  /// Takes in what another queue has yet to send: one that lived in memory while the disk was full.
  package mutating func absorb(_ other: ReportQueue, urls: [String]) {
    dropped += other.dropped
    for entry in other.entries where !entry.pending.isEmpty {
      if !merge(entry.pending, into: entry.key) { insert(entry, urls: urls) }
    }
  }

  private mutating func merge(_ pending: [String: ReportTally], into key: String) -> Bool {
    guard let index = entries.firstIndex(where: { $0.key == key }) else { return false }
    for (url, tally) in pending {
      entries[index].pending[url, default: ReportTally(count: 0, first: .max, last: .min)]
        .add(tally)
    }
    return true
  }

  private mutating func insert(_ entry: Entry, urls: [String]) {
    while !hasRoom(for: entry),
      let index = entries.firstIndex(where: { old in
        !urls.contains { old.pending[$0] != nil }
      })
    {
      entries.remove(at: index)
    }
    guard hasRoom(for: entry) else {
      dropped += entry.pending.values.map(\.count).max() ?? 0
      return
    }
    entries.append(entry)
  }

  private func hasRoom(for entry: Entry) -> Bool {
    entries.count < rules.mostReports
      && entries.count(where: { $0.host == entry.host }) < rules.mostOfOneHost
      && entries.reduce(entry.bytes) { $0 + $1.bytes } <= rules.mostBytes
  }

  /// Brings the queue to the present: kinds that are over are forgotten, times that no rule can have
  /// set are over. What is owed to URLs that this process does not know waits for a while: another
  /// process, or another client of this one, may know them.
  package mutating func tidy(urls: [String], at now: Int64) {
    for url in endpoints.keys { endpoints[url]?.held(at: now, rules) }
    for index in entries.indices {
      entries[index].pending = entries[index].pending.filter {
        urls.contains($0.key) || now - rules.patience < $0.value.last
      }
      for (url, sent) in entries[index].sent where sent.at > now {
        entries[index].sent[url]?.at = now
      }
    }
    entries.removeAll { entry in
      entry.pending.isEmpty && entry.sent.values.allSatisfy { $0.at + rules.window <= now }
    }
    endpoints = endpoints.filter { url, _ in
      urls.contains(url) || entries.contains { $0.pending[url] != nil }
    }
  }
}

extension ReportQueue.Endpoint {
  fileprivate mutating func held(at now: Int64, _ rules: ReportRules) {
    if notBefore > now + ReportRules.retryAfter.upperBound { notBefore = now }
    if leaseUntil > now + rules.lease { leaseUntil = now }
  }
}

/// What makes two failures the same one: the same rule failed for the same host and port, the server
/// showed the same key, and it had the same consequence.
package struct ReportKey: Hashable, Sendable {
  package let host: String
  let port: Int?
  let rule: String
  let leaf: SPKIPin?
  let isRefused: Bool

  /// The key as one line, for the disk.
  package var text: String {
    let port = port.map(String.init) ?? "-"
    return "\(host) \(port) \(rule) \(leaf?.base64 ?? "-") \(isRefused ? "refused" : "accepted")"
  }
}

/// How often something happened, and when: Unix seconds by the clock of the device.
package struct ReportTally: Hashable, Sendable {
  package var count: Int64
  package var first: Int64
  package var last: Int64

  package init(count: Int64, first: Int64, last: Int64) {
    self.count = count
    self.first = first
    self.last = last
  }

  /// Adds another's failures. A count that no JSON could say exactly stays where it is.
  package mutating func add(_ other: ReportTally) {
    count = min(count + other.count, 1 << 50)
    first = min(first, other.first)
    last = max(last, other.last)
  }
}

/// The numbers by which a queue of reports is kept and sent.
package struct ReportRules: Hashable, Sendable {
  /// The most different failures at a time, and the most of one host: an attack on one host must not
  /// crowd out the report of another.
  package var mostReports = 128
  package var mostOfOneHost = 16
  /// The most bytes of all their bodies together.
  package var mostBytes = 1 << 20
  /// Seconds between two reports of the same failure to one URL. Repeats meanwhile are one report.
  package var window: Int64 = 3600
  /// Seconds for which a process may take to send one report before another may.
  package var lease: Int64 = 120
  /// Seconds for which a report to a URL is kept that no longer seems to be configured.
  package var patience: Int64 = 30 * 86_400

  package init() {}

  /// Bounds of what a server may ask for with Retry-After, in seconds.
  package static let retryAfter: ClosedRange<Int64> = 1...86_400
  /// Bounds of what is waited after a failure without it, in seconds.
  package static let backOff: ClosedRange<Int64> = 60...21_600

  /// Seconds to wait after so many failures in a row (1 or more): somewhere between the least and
  /// twice as much as after the failure before, so that devices which failed together do not come
  /// back together.
  ///
  /// - Parameter random: in 0..<1.
  package static func delay(afterFailures failures: Int, random: Double) -> Int64 {
    let ceiling = min(backOff.lowerBound << Int64(min(max(failures, 1), 20)), backOff.upperBound)
    let spread = Double(ceiling - backOff.lowerBound) * min(max(random, 0), 1)
    return backOff.lowerBound + Int64(spread)
  }
}
