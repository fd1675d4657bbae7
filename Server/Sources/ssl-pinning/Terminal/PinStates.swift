import SslPinningRules

/// Which leaf pins of a list count at one moment, and which hosts are about to be without one.
///
/// - A pin that was active when its statement was issued lives as long as the statement. In format 1 and beside a
///   retired statement it ends with its own `expire`.
struct PinStates {
  let registry: Registry
  /// What stands beside the list, retired or not; `nil` in format 1.
  let statement: Statement?
  let denied: Set<SPKIPin>
  let time: TrustTime

  /// The statement, if pins live by it.
  private var active: Statement? { statement?.isRetired == true ? nil : statement }

  /// What a person should see to: last pins that end, and moments that cannot be meant.
  var problems: [String] { ending + tooLate }

  /// What is said each time that the list is signed: where pins live by a statement, only ``problems`` tells their
  /// ends, or a job that signs daily would tell them a month long.
  var warnings: [String] { (active == nil ? ending : []) + tooLate }

  /// What the ends that clients go by do not show: last pins that only the statement keeps alive.
  func endsBehindStatement(within seconds: Int64) -> [String] {
    active.map { ending(within: min(seconds, $0.expires - time.clock)) } ?? []
  }

  func isDenied(_ key: RegistryKey) -> Bool { key.readablePin.map(denied.contains) ?? false }

  /// Whether a server that shows the key is let in.
  func counts(_ key: RegistryKey) -> Bool {
    guard let spki = key.readablePin, !isDenied(key) else { return false }
    return PinSet([Pin(spki, expires: expires(key))]).contains(spki, at: time.later)
  }

  func state(_ key: RegistryKey) -> String {
    guard key.readablePin != nil else { return "unreadable" }
    if isDenied(key) { return "denied" }
    return expires(key).map { time.later > $0 } == true ? "expired" : "ok"
  }

  /// Once its last pin is over, a host is refused, or in no statement that is signed, unless a wider pattern lists the
  /// same key. Another one serves other servers.
  private var ending: [String] { ending(within: Self.warningTime(of: active)) }

  private func ending(within seconds: Int64) -> [String] {
    let open = (statement?.hosts ?? []).open(beside: registry.patterns, denied: denied)
    let limit = time.clock + seconds
    let usable = registry.keys.filter { $0.readablePin != nil && !isDenied($0) }
    let lasting = usable.filter { $0.expires.map { $0 >= limit } ?? true }
    let counting = usable.filter(counts)
    let living = Set(counting.map(\.pattern))
    let ending = Dictionary(grouping: usable, by: \.pattern).filter { pattern, keys in
      guard !open.contains(pattern), keys.allSatisfy({ $0.expires.map { $0 < limit } ?? false }),
        // One without any key that counts is told already.
        living.contains(where: { $0.covers(pattern) })
      else { return false }
      return !lasting.contains { wider in
        wider.pattern.covers(pattern) && keys.contains { $0.readablePin == wider.readablePin }
      }
    }
    return ending.map { pattern, keys in
      // Its own, or those of a wider pattern with one of its keys.
      let serving = counting.filter { wider in
        wider.pattern.covers(pattern) && keys.contains { $0.readablePin == wider.readablePin }
      }
      let last = (serving.isEmpty ? keys : serving).compactMap(\.expires).max() ?? 0
      let end = dateText(last)
      return serving.isEmpty
        ? "the last pin of its own of \(pattern) is over since \(end), and servers that show its key are"
          + " refused; hint: a later expire, or leave the entry out where a wider pattern's keys are shown"
        : "the last pin of \(pattern) \(last < time.later ? "ended" : "ends") on \(end)"
          + (active == nil ? ", and every client refuses the host 26 hours later" : "")
          + "; hint: a later expire"
    }.sorted()
  }

  /// A moment in milliseconds is one that never comes.
  private var tooLate: [String] {
    let late = registry.keys.filter { $0.expires.map { $0 > 253_402_300_799 } ?? false }
    return Set(late.map(\.pattern.description)).sorted().map {
      "a pin of \($0) has an expire after the year 9999, and never ends; hint: seconds, not milliseconds"
    }
  }

  /// Seconds before an end in which it is told; a statement of 30 days is always that near to its own.
  static func warningTime(of statement: Statement?) -> Int64 {
    let most: Int64 = 30 * 86_400
    return statement.map { min(most, ($0.expires - $0.issued) / 2) } ?? most
  }

  private func expires(_ key: RegistryKey) -> Int64? {
    guard let active, let own = key.expires, own >= active.issued else { return key.expires }
    return max(own, active.expires)
  }
}
