import CanonicalJSON
import SslPinningRules

/// What a verified registry says at one moment, for people and for programs.
struct RegistryReport {
  private let trusted: TrustedRegistry
  private let policy: PinningPolicy
  private let time: TrustTime
  private let format1: Format1Signature
  private let keySet: KeySet?
  private let elsewhere: String?

  /// - Parameters:
  ///   - now: Unix time in seconds, for the expiries.
  ///   - format1: what clients find that know format 1 only.
  ///   - keySet: the newest one that is believed.
  ///   - elsewhere: what is wrong with what is served beside the document.
  /// - Throws: ``PolicyError``, never under the settings that are used here.
  init(
    _ trusted: TrustedRegistry, at now: Int64, _ format1: Format1Signature, _ keySet: KeySet?,
    _ elsewhere: String? = nil
  ) throws(PolicyError) {
    self.trusted = trusted
    policy = try trusted.policy()
    time = trusted.time(at: now)
    self.format1 = format1
    self.keySet = keySet
    self.elsewhere = elsewhere
  }

  /// What a statement says, and what it rests on; nothing for a document of format 1.
  var summary: String? {
    guard let statement = trusted.statement else { return nil }
    var table = TextTable()
    table.add(["format", statement.isRetired ? "2, retired: back to format 1" : "2"])
    table.add(["registry", statement.registry])
    table.add(["statement", "\(statement.number.epoch).\(statement.number.version)"])
    table.add(["issued", dateText(statement.issued)])
    table.add(["expires", dateText(statement.expires)])
    // One of a time to come would keep out all that is signed until then.
    let minimum =
      statement.issued > time.clock
      ? "none: the statement is issued ahead of this clock"
      : "RegistryMinimum(epoch: \(statement.number.epoch), issued: \(statement.issued))"
    table.add(["minimum", minimum])
    let end = trusted.keySetExpires.map { ", expires \(dateText($0))" } ?? ""
    table.add(["key set", trusted.keySetEpoch == 0 ? "none" : "\(trusted.keySetEpoch)\(end)"])
    table.add([
      "hosts",
      "\(Set(trusted.registry.keys.map(\.pattern) + statement.hosts.map(\.pattern)).count)",
    ])
    for host in statement.hosts { table.add(["", text(host)]) }
    table.add(["denied", "\(statement.denied.count)"])
    for pin in statement.denied { table.add(["", pin.base64]) }
    table.add(["removed", "\(statement.removed.count)"])
    for pattern in statement.removed { table.add(["", pattern.description]) }
    table.add(["mirrors", "\(statement.mirrors.count)"])
    for mirror in statement.mirrors { table.add(["", mirror.description]) }
    if format1 != .unknown { table.add(["format 1", format1.rawValue]) }
    return table.text
  }

  private func text(_ host: HostSettings) -> String {
    let pins = host.ca.isEmpty ? "" : ", CA \(host.ca.map(\.base64).joined(separator: " "))"
    return "\(host.pattern): match \(host.match == .any ? "any" : "all")"
      + (host.enforces ? ", enforced" : "") + pins
  }

  /// What in the registry clients cannot use.
  var problems: [String] {
    trusted.registry.problems.map(\.description)
      + HostProblems.texts(of: trusted.registry, under: policy, at: time)
      + HostProblems.texts(of: trusted.registry, removed: trusted.statement?.removed ?? [])
      + endingPins
      + [format1.problem, elsewhere, statementProblem, keySetProblem].compactMap { $0 }
      + unusableKeys
  }

  /// Seconds before an end in which it is told; a statement of 30 days is always that near to its own.
  private func warningTime(of statement: Statement) -> Int64 {
    min(30 * 86_400, (statement.expires - statement.issued) / 2)
  }

  /// Once its last pin is over, a host is in no statement that is signed, unless a wider pattern lists the same
  /// key. Another one serves other servers.
  private var endingPins: [String] {
    guard let statement = trusted.statement, !statement.isRetired else { return [] }
    let open = statement.hosts.open(beside: trusted.registry.patterns, denied: policy.denied)
    let limit = time.clock + warningTime(of: statement)
    let usable = trusted.registry.keys.filter { isReadable($0) && !isDenied($0) }
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
      let ends = (serving.isEmpty ? keys : serving).compactMap(\.expires)
      let end = dateText(ends.max() ?? 0)
      return serving.isEmpty
        ? "the last pin of its own of \(pattern) is over since \(end), and servers that show its key are"
          + " refused; hint: a later expire, or leave the entry out where a wider pattern's keys are shown"
        : "the last pin of \(pattern) ends on \(end); hint: a later expire"
    }.sorted()
  }

  /// Signed daily, a statement never comes near its end, and one that lives shorter than the format asks for leaves
  /// no time to find out that nobody signs.
  private var statementProblem: String? {
    guard let statement = trusted.statement else { return nil }
    guard statement.expires - statement.issued >= 30 * 86_400 else {
      return
        "the statement ends on \(dateText(statement.expires)), less than 30 days after it was issued: clients refuse"
        + " every connection once nobody signs for as long; hint: sign --expires-days"
    }
    guard statement.expires < time.clock + warningTime(of: statement) else { return nil }
    return
      "the statement ends on \(dateText(statement.expires)), and signed daily it never comes near;"
      + " hint: is it still signed?"
  }

  /// New root signatures may take weeks to get.
  private var keySetProblem: String? {
    guard let end = trusted.keySetExpires, end < time.clock + 30 * 86_400 else { return nil }
    return "nothing new is accepted under key set \(trusted.keySetEpoch) from \(dateText(end)) on;"
      + " hint: keys sign-set makes the next"
  }

  /// Keys that a role counts on, and that can sign nothing. Those that it asks for besides may be too new.
  private var unusableKeys: [String] {
    guard let keySet else { return [] }
    return (keySet.root.keys.map { ("root", $0) } + keySet.online.keys.map { ("online", $0) })
      .filter { !$0.1.isKnown }
      .map { role, key in
        "\(role) key \(key.id) of key set \(keySet.epoch) has the algorithm \(key.shownAlgorithm), and clients"
          + " count nothing that it signs; hint: keys sign-set makes the next set; or update ssl-pinning"
      }
  }

  /// A line for each entry.
  var table: String {
    var table = TextTable(header: ["host", "pin", "expires", "state"])
    for key in trusted.registry.keys {
      table.add([
        key.pattern.description, (try? key.pin.get())?.base64 ?? "-",
        key.expires.map(dateText) ?? "never", state(key),
      ])
    }
    return table.text
  }

  /// Everything in one object.
  var json: JSONValue {
    let keys = trusted.registry.keys.map { key in
      JSONValue.members([
        "domainName": .string(key.pattern.description),
        "key": .optional((try? key.pin.get())?.base64),
        "expire": key.expires.map(JSONValue.integer) ?? .null,
        "state": .string(state(key)), "counts": .bool(isReadable(key) && counts(key)),
        "fqdn": .optional(key.fqdn),
      ])
    }
    let statement = trusted.statement
    return .members([
      "format": .integer(statement == nil ? 1 : 2),
      "statement": statement.map { .object($0.json) } ?? .null,
      "mirrors": .array((statement?.mirrors ?? []).map { .string($0.description) }),
      "keySetEpoch": .integer(trusted.keySetEpoch),
      "keySetExpires": trusted.keySetExpires.map(JSONValue.integer) ?? .null,
      "format1Signature": .string(format1.rawValue),
      "valid": .bool(true), "at": .integer(time.clock), "keys": .array(keys),
      "payloadDigest": .string(trusted.stamp.payloadDigest),
      "problems": .array(problems.map(JSONValue.string)),
    ])
  }

  private func isReadable(_ key: RegistryKey) -> Bool { (try? key.pin.get()) != nil }

  private func isDenied(_ key: RegistryKey) -> Bool {
    (try? key.pin.get()).map(policy.denied.contains) ?? false
  }

  private func counts(_ key: RegistryKey) -> Bool {
    guard let spki = try? key.pin.get(), !isDenied(key) else { return false }
    return PinSet([Pin(spki, expires: expires(key))]).contains(spki, at: time.later)
  }

  private func state(_ key: RegistryKey) -> String {
    guard isReadable(key) else { return "unreadable" }
    if isDenied(key) { return "denied" }
    return expires(key).map { time.later > $0 } == true ? "expired" : "ok"
  }

  /// A pin that was active when its statement was issued lives as long as the statement.
  private func expires(_ key: RegistryKey) -> Int64? {
    guard let statement = trusted.statement, !statement.isRetired, let own = key.expires,
      own >= statement.issued
    else { return key.expires }
    return max(own, statement.expires)
  }
}
