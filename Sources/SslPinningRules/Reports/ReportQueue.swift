import CanonicalJSON

/// Reports on their way to collectors: a pure value, which its owner keeps on disk.
///
/// - The first failure of a kind is sent at once. Its repeats within the window become one report with a count;
///   so does everything that happens while a collector is unreachable.
/// - Each URL is served independently: a report that one has received or refused is still due at another.
/// - At least once: a report leaves the queue only after a collector has answered. If the answer was lost, it is
///   sent again with the same `report-id`, and the same count or a larger one.
/// - Repeats are always counted. If the queue is full, new failures are refused and counted (`dropped-reports`):
///   the first failures tell more than later ones. Kinds that are due at no configured URL give way first, the
///   oldest first.
/// - One process at a time sends to a URL; if it dies, the next may send after the lease.
/// - A time further in the future than any rule allows was written under a wrong clock and counts as past, so
///   that a clock which was set back silences nothing.
package struct ReportQueue: Hashable, Sendable {
  /// One kind of failure.
  struct Entry: Hashable, Sendable {
    var key: String
    var host: String
    /// Random, so that collectors can recognise a report that came twice.
    var id: String
    /// The members that the newest failure had.
    var body: JSONObject
    /// What each URL has not received yet.
    var pending: [String: ReportTally]
    /// What each URL has received.
    var sent: [String: Sent] = [:]
    /// The size of the body in bytes.
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
  /// How many failures found no room since the queue was created.
  package internal(set) var dropped: Int64 = 0

  /// An empty queue.
  package init(rules: ReportRules = ReportRules()) { self.rules = rules }

  /// Whether there is nothing to send, now or later.
  package var isIdle: Bool { entries.allSatisfy { $0.pending.isEmpty } }

  /// How many kinds of failures are held.
  package var count: Int { entries.count }

  /// Adds failures.
  ///
  /// - Parameters:
  ///   - urls: the collectors to report to.
  ///   - makeID: makes a random text for a new kind.
  package mutating func add(
    _ inbox: ReportInbox, app: ReportedApp, urls: [String], at now: Int64,
    makeID: () -> String
  ) {
    dropped += inbox.dropped
    for item in inbox.items {
      let key = item.report.key
      let pending = Dictionary(urls.map { ($0, item.tally) }) { first, _ in first }
      let entry = Entry(
        key: "\(key.text) \(app.key)", host: key.host, id: makeID(), body: item.report.body(app),
        pending: pending)
      if !merge(entry) { insert(entry, urls: urls) }
    }
  }

  /// Adds another queue, which was in memory while the disk was full. Also what that one sent: its repeats wait for their hour.
  package mutating func absorb(_ other: ReportQueue, urls: [String]) {
    dropped += other.dropped
    for entry in other.entries where !merge(entry) { insert(entry, urls: urls) }
  }

  /// Takes over the failures of an entry, and its body: with the first one's, a report would tell of a list and a confirmation of
  /// long ago for as long as failures go on.
  private mutating func merge(_ entry: Entry) -> Bool {
    guard let index = entries.firstIndex(where: { $0.key == entry.key }) else { return false }
    for (url, tally) in entry.pending {
      entries[index].pending[url, default: ReportTally(count: 0, first: .max, last: .min)]
        .add(tally)
    }
    for (url, sent) in entry.sent {
      let known = entries[index].sent[url]
      entries[index].sent[url] = Sent(
        serial: max(known?.serial ?? 0, sent.serial), at: max(known?.at ?? .min, sent.at))
    }
    let all = entries.reduce(entry.bytes - entries[index].bytes) { $0 + $1.bytes }
    if all <= rules.mostBytes {
      (entries[index].body, entries[index].bytes) = (entry.body, entry.bytes)
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

  /// Updates the queue to the present: forgets finished kinds, and ends times that no rule can have set. Reports
  /// for unknown URLs are kept for a while: another process, or another client in this one, may know them.
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

/// Identifies a kind of failure: two failures are the same if the same rule failed for the same host and port,
/// the server showed the same key, and the consequence was the same.
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

  /// Adds the failures of another tally. A count stops at JSON's greatest exact integer.
  package mutating func add(_ other: ReportTally) {
    count = min(count + other.count, 1 << 50)
    first = min(first, other.first)
    last = max(last, other.last)
  }
}

/// The limits and times of a queue of reports.
package struct ReportRules: Hashable, Sendable {
  /// The most different failures at a time, and the most of one host: an attack on one host must not
  /// crowd out reports about another.
  package var mostReports = 128
  package var mostOfOneHost = 16
  /// The most bytes of all bodies together.
  package var mostBytes = 1 << 20
  /// Seconds between two reports of the same failure to one URL. Repeats in between become one report.
  package var window: Int64 = 3600
  /// Seconds that a process may take to send a report before another process may.
  package var lease: Int64 = 120
  /// Seconds for which a report is kept for a URL that no longer seems to be configured.
  package var patience: Int64 = 30 * 86_400

  package init() {}

  /// Bounds of a server's Retry-After, in seconds.
  package static let retryAfter: ClosedRange<Int64> = 1...86_400
  /// Bounds of the back-off after a failure without Retry-After, in seconds.
  package static let backOff: ClosedRange<Int64> = 60...21_600

  /// Seconds to wait after so many failures in a row (1 or more): a random time between the minimum and a bound
  /// that doubles with each failure, so that devices which failed together do not come back together.
  ///
  /// - Parameter random: in 0..<1.
  package static func delay(afterFailures failures: Int, random: Double) -> Int64 {
    let ceiling = min(backOff.lowerBound << Int64(min(max(failures, 1), 20)), backOff.upperBound)
    let spread = Double(ceiling - backOff.lowerBound) * min(max(random, 0), 1)
    return backOff.lowerBound + Int64(spread)
  }
}
