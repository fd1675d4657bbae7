import CanonicalJSON

extension ReportQueue {
  /// One report to one URL.
  package struct Delivery: Hashable, Sendable {
    package let url: String
    /// The JSON to POST.
    package let body: [UInt8]
    let key: String
    let serial: Int64
    let tally: ReportTally
    let owner: String
  }

  /// The result of a delivery.
  package enum Answer: Hashable, Sendable {
    /// The collector answered with this status; `retryAfter` in seconds.
    case status(Int, retryAfter: Int64?)
    /// No answer.
    case unreachable
  }

  /// The consequence for the report.
  package enum Settlement: Hashable, Sendable {
    case delivered
    /// The collector refuses this report; it is not sent there again.
    case rejected
    /// Nothing is sent to this collector before this Unix time.
    case postponed(until: Int64)
    /// Another process has sent it meanwhile.
    case superseded
  }

  /// The next report for `url`, if one is due and no other process is sending there. The owner holds the URL
  /// until ``settle(_:_:at:random:)`` or the end of the lease.
  package mutating func claim(_ url: String, by owner: String, at now: Int64) -> Delivery? {
    var endpoint = endpoints[url] ?? Endpoint()
    guard endpoint.isFree(for: owner, at: now), endpoint.notBefore <= now,
      let entry = entries.first(where: { dueTime($0, url).map { $0 <= now } ?? false }),
      let tally = entry.pending[url]
    else { return nil }
    endpoint.leaseOwner = owner
    endpoint.leaseUntil = now + rules.lease
    endpoints[url] = endpoint
    let serial = entry.sent[url]?.serial ?? 0
    var body = entry.body
    body["report-id"] = .string("\(entry.id)-\(serial)")
    body["count"] = JSONNumber(exactly: tally.count).map { .number($0) }
    body["first-date-time"] = .string(RFC3339.text(tally.first))
    body["date-time"] = .string(RFC3339.text(tally.last))
    if dropped > 0 { body["dropped-reports"] = JSONNumber(exactly: dropped).map { .number($0) } }
    return Delivery(
      url: url, body: JSONValue.object(body).canonicalBytes, key: entry.key, serial: serial,
      tally: tally, owner: owner)
  }

  /// Applies an answer.
  ///
  /// - 2xx: delivered.
  /// - 408, 429, 5xx, a redirect, no answer: postponed, by `Retry-After` or else by the back-off.
  /// - Any other status: the collector will never accept it.
  ///
  /// - Parameter random: in 0..<1.
  package mutating func settle(
    _ delivery: Delivery, _ answer: Answer, at now: Int64, random: Double
  ) -> Settlement {
    let url = delivery.url
    let isOurs = endpoints[url]?.leaseOwner == delivery.owner
    if isOurs { endpoints[url]?.leaseOwner = nil }
    guard let index = entries.firstIndex(where: { $0.key == delivery.key }),
      let pending = entries[index].pending[url],
      entries[index].sent[url]?.serial ?? 0 == delivery.serial
    else { return .superseded }
    switch answer {
    case .status(200..<300, _):
      conclude(index, delivery, pending, at: now)
      return .delivered
    case .status(let code, _) where (400..<500).contains(code) && code != 408 && code != 429:
      conclude(index, delivery, pending, at: now)
      return .rejected
    case .status(_, let wait): return postpone(index, url, wait: wait, at: now, random: random)
    case .unreachable: return postpone(index, url, wait: nil, at: now, random: random)
    }
  }

  /// Returns a claim that was not carried out.
  package mutating func release(_ delivery: Delivery) {
    guard endpoints[delivery.url]?.leaseOwner == delivery.owner else { return }
    endpoints[delivery.url]?.leaseOwner = nil
  }

  private mutating func conclude(
    _ index: Int, _ delivery: Delivery, _ pending: ReportTally, at now: Int64
  ) {
    let url = delivery.url
    let rest = pending.count - delivery.tally.count
    entries[index].pending[url] =
      rest > 0 ? ReportTally(count: rest, first: delivery.tally.last, last: pending.last) : nil
    entries[index].sent[url] = Sent(serial: delivery.serial + 1, at: now)
    endpoints[url] = nil
  }

  private mutating func postpone(
    _ index: Int, _ url: String, wait: Int64?, at now: Int64, random: Double
  ) -> Settlement {
    var endpoint = endpoints[url] ?? Endpoint()
    endpoint.failures = min(endpoint.failures + 1, 1000)
    let delay = wait ?? ReportRules.delay(afterFailures: endpoint.failures, random: random)
    endpoint.notBefore = now + delay
    endpoints[url] = endpoint
    // The next turn is another report's: one that makes a collector fail must not block the others.
    entries.append(entries.remove(at: index))
    return .postponed(until: endpoint.notBefore)
  }

  /// The Unix time at which the next report to one of these URLs is due, past or future; `nil` if none is
  /// pending.
  package func nextTime(_ urls: [String], by owner: String) -> Int64? {
    urls.compactMap { url -> Int64? in
      guard let due = entries.compactMap({ dueTime($0, url) }).min() else { return nil }
      guard let endpoint = endpoints[url] else { return due }
      let isOthers = endpoint.leaseOwner != nil && endpoint.leaseOwner != owner
      return max(due, endpoint.notBefore, isOthers ? endpoint.leaseUntil : .min)
    }
    .min()
  }

  private func dueTime(_ entry: Entry, _ url: String) -> Int64? {
    guard entry.pending[url] != nil else { return nil }
    return entry.sent[url].map { $0.at + rules.window } ?? .min
  }
}

extension ReportQueue.Endpoint {
  fileprivate func isFree(for owner: String, at now: Int64) -> Bool {
    leaseOwner == nil || leaseOwner == owner || leaseUntil <= now
  }
}

/// Reads the `Retry-After` header field (RFC 9110 §10.2.3): seconds, or a date.
///
/// - A date is read in all three forms that RFC 9110 §5.6.7 requires.
/// - The result is clamped to ``ReportRules/retryAfter``: neither an old date nor a typing error may
///   lead to a flood or to silence for years.
package enum RetryAfter {
  /// How many seconds from `now` (Unix seconds) to wait; `nil` if the field cannot be read.
  package static func seconds(_ text: String, at now: Int64) -> Int64? {
    let text = text.drop { $0 == " " || $0 == "\t" }
    let digits = text.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let rest = text.utf8.dropFirst(digits.count)
    let wait: Int64
    if !digits.isEmpty, rest.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) {
      wait = Int64(String(digits) ?? "") ?? .max
    } else if let time = date(text, at: now) {
      wait = time.subtractingReportingOverflow(now).partialValue
    } else {
      return nil
    }
    let bounds = ReportRules.retryAfter
    return min(max(wait, bounds.lowerBound), bounds.upperBound)
  }

  /// All three forms have the same parts with other separators and in another order.
  private static func date(_ text: Substring, at now: Int64) -> Int64? {
    let parts = text.utf8.split { $0 == 0x20 || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ",") }
      .map { String($0) ?? "" }
    switch parts.count {
    // Sun, 06 Nov 1994 08:49:37 GMT, and the obsolete Sunday, 06-Nov-94 08:49:37 GMT
    case 6 where parts[5] == "GMT":
      return time(
        year: fullYear(parts[3], at: now), month: parts[2], day: parts[1], clock: parts[4])
    // The obsolete Sun Nov  6 08:49:37 1994
    case 5: return time(year: parts[4], month: parts[1], day: parts[2], clock: parts[3])
    default: return nil
    }
  }

  private static func time(year: String, month: String, day: String, clock: String) -> Int64? {
    guard let month = months.firstIndex(of: month) else { return nil }
    let pad = { (text: String) in text.utf8.count == 1 ? "0" + text : text }
    return RFC3339.unixSeconds("\(year)-\(pad(String(month + 1)))-\(pad(day))T\(clock)Z")
  }

  /// Two digits mean the latest year that ends in them and is not more than 50 years ahead.
  private static func fullYear(_ text: String, at now: Int64) -> String {
    guard text.utf8.count == 2, let short = Int(text),
      let current = Int(String(RFC3339.text(now).prefix(4)))
    else { return text }
    let last = current + 50
    return String(last - (last - short) % 100)
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}
